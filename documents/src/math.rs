//! Formulas as a line of text: MathML, as in `OpenDocument`, and Office's own markup.
//!
//! Both are trees of the same structures with different names. Indices and exponents are written as
//! in TeX, except for exponents of digits, which become superscript characters: `E = m ⋅ c²`.

use crate::{
    spaces::one_line,
    xml::{Element, Node},
};

/// Operators that get a space on either side.
const BETWEEN: &str = "=+-−±⋅·×÷<>≤≥≠≈≡∈∉⊂⊆∪∩→←⇒⇔↔∧∨∝∼";

pub(crate) const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];

/// Returns the text of a formula; empty if its markup has no text.
pub(crate) fn text(formula: &Element) -> String {
    one_line(&row(formula))
}

/// Joins the contents of an element.
fn row(parent: &Element) -> String {
    let mut text = String::new();
    for node in &parent.children {
        match node {
            Node::Text(words) => text.push_str(words.trim()),
            Node::Element(element) => {
                let part = part(element);
                let sign = part.trim();
                let mut letters = sign.chars();
                let between = letters.next().is_some_and(|c| BETWEEN.contains(c))
                    && letters.next().is_none()
                    && is_operator(element);
                // A sign at the beginning of a row gets no spaces.
                if between && !text.trim().is_empty() {
                    text.push_str(&format!(" {sign} "));
                } else {
                    text.push_str(&part);
                }
            }
        }
    }
    text
}

/// Returns whether an element may be an operator: `mo` in MathML. Office uses `r` for signs and
/// letters.
fn is_operator(element: &Element) -> bool {
    matches!(&*element.name, "mo" | "r")
}

fn part(element: &Element) -> String {
    let parts: Vec<&Element> =
        element.elements().filter(|part| !part.name.ends_with("Pr")).collect();
    let at = |place: usize| parts.get(place).map(|part| row_or_part(part)).unwrap_or_default();
    let named = |name: &str| element.child(name).map(row).unwrap_or_default();
    match &*element.name {
        "mfrac" => fraction(&at(0), &at(1)),
        "f" => fraction(&named("num"), &named("den")),
        "msup" | "mover" => at(0) + &raised(&at(1)),
        "msub" | "munder" => at(0) + &lowered(&at(1)),
        "msubsup" | "munderover" => at(0) + &lowered(&at(1)) + &raised(&at(2)),
        "sSup" => named("e") + &raised(&named("sup")),
        "sSub" => named("e") + &lowered(&named("sub")),
        "sSubSup" => named("e") + &lowered(&named("sub")) + &raised(&named("sup")),
        "limLow" => named("e") + &lowered(&named("lim")),
        "limUpp" => named("e") + &raised(&named("lim")),
        "nary" => {
            let sign = property(element, "naryPr", "chr").unwrap_or_else(|| "∫".to_owned());
            sign + &lowered(&named("sub")) + &raised(&named("sup")) + " " + &named("e")
        }
        "msqrt" => format!("√({})", row(element)),
        "mroot" => format!("{}√({})", at(1), at(0)),
        "rad" => format!("{}√({})", named("deg"), named("e")),
        "mfenced" => {
            let fence = |name: &str, usual: &str| {
                element.attribute(name).unwrap_or_else(|| usual.to_owned())
            };
            let inner: Vec<String> = parts.iter().map(|part| row_or_part(part)).collect();
            fence("open", "(") + &inner.join(", ") + &fence("close", ")")
        }
        "d" => {
            let fence = |name: &str, usual: &str| {
                property(element, "dPr", name).unwrap_or_else(|| usual.to_owned())
            };
            let inner: Vec<String> = parts.iter().map(|part| row(part)).collect();
            fence("begChr", "(") + &inner.join(&fence("sepChr", "|")) + &fence("endChr", ")")
        }
        // Rows of a table, of a matrix, and of equations below each other.
        "mtable" | "m" | "eqArr" => {
            let rows: Vec<String> = parts.iter().map(|part| row_or_part(part)).collect();
            rows.join("; ")
        }
        "mtr" | "mlabeledtr" | "mr" => {
            let cells: Vec<String> = parts.iter().map(|part| row(part)).collect();
            cells.join(", ")
        }
        "func" => format!("{} {}", named("fName"), named("e")),
        "semantics" => at(0),
        "mspace" => " ".to_owned(),
        "annotation" | "annotation-xml" | "mphantom" | "phant" | "del" | "moveFrom" => {
            String::new()
        }
        name if name.ends_with("Pr") => String::new(),
        "mo" => match row(element).as_str() {
            "," => ", ".to_owned(),
            sign => sign.to_owned(),
        },
        _ => row(element),
    }
}

fn row_or_part(element: &Element) -> String {
    if &*element.name == "e" { row(element) } else { part(element) }
}

/// Returns the value of a property; `None` for the default. An empty value means no character.
fn property(element: &Element, group: &str, name: &str) -> Option<String> {
    Some(element.child(group)?.child(name)?.attribute("val").unwrap_or_default())
}

fn fraction(above: &str, below: &str) -> String {
    format!("{}/{}", bracketed(above), bracketed(below))
}

fn bracketed(text: &str) -> String {
    let text = text.trim();
    if text.chars().all(|c| c.is_alphanumeric() || c == '.') {
        text.to_owned()
    } else {
        format!("({text})")
    }
}

/// Converts raised digits, signs and `n` to superscript characters, so that 10⁻⁶ does not become
/// 10-6. Returns `None` for other text, which keeps its meaning on the line.
pub(crate) fn exponent(text: &str) -> Option<String> {
    let raised: Option<String> = text
        .chars()
        .map(|c| match c {
            '+' => Some('⁺'),
            '-' | '−' | '–' => Some('⁻'),
            'n' => Some('ⁿ'),
            c if c.is_whitespace() => Some(c),
            c => RAISED.get(c.to_digit(10)? as usize).copied(),
        })
        .collect();
    raised.filter(|_| text.contains(|c: char| c.is_ascii_digit() || c == 'n'))
}

fn raised(text: &str) -> String {
    let text = text.trim();
    let digits: Option<String> =
        text.chars().map(|c| RAISED.get(c.to_digit(10)? as usize).copied()).collect();
    digits.unwrap_or_else(|| script('^', text))
}

fn lowered(text: &str) -> String {
    script('_', text.trim())
}

fn script(sign: char, text: &str) -> String {
    match text.chars().count() {
        0 => String::new(),
        1 => format!("{sign}{text}"),
        _ => format!("{sign}{{{text}}}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{format::Format, xml};

    fn read(xml: &str) -> String {
        text(&xml::parse(xml.as_bytes(), Format::Odt).unwrap())
    }

    #[test]
    fn formulas_of_open_documents() {
        assert_eq!(
            read(
                "<math><semantics><mrow><mi>E</mi><mo>=</mo><mrow><mi>m</mi><mo>⋅</mo><msup><mi>c</mi><mn>2</mn></msup></mrow></mrow><annotation encoding='StarMath 5.0'>E = m cdot c^2</annotation></semantics></math>"
            ),
            "E = m ⋅ c²"
        );
        assert_eq!(
            read(
                "<math><mi>x</mi><mo>=</mo><mfrac><mrow><mo>-</mo><mi>b</mi><mo>±</mo><msqrt><msup><mi>b</mi><mi>n</mi></msup></msqrt></mrow><mrow><mn>2</mn><mi>a</mi></mrow></mfrac></math>"
            ),
            "x = (-b ± √(b^n))/2a"
        );
        assert_eq!(
            read(
                "<math><munderover><mo>∑</mo><mrow><mi>k</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover><mfenced><mi>a</mi><mi>b</mi></mfenced><mtable><mtr><mtd>1</mtd><mtd>2</mtd></mtr><mtr><mtd>3</mtd></mtr></mtable></math>"
            ),
            "∑_{k = 1}^n(a, b)1, 2; 3"
        );
    }

    #[test]
    fn formulas_of_office() {
        let run = |text: &str| format!("<m:r><m:rPr/><m:t>{text}</m:t></m:r>");
        let formula = format!(
            "<m:oMath>{}{}<m:f><m:fPr/><m:num>{}</m:num><m:den>{}</m:den></m:f><m:sSup><m:e>{}</m:e><m:sup>{}</m:sup></m:sSup><m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr><m:sub>{}</m:sub><m:sup/><m:e>{}</m:e></m:nary><m:d><m:dPr><m:begChr m:val='['/></m:dPr><m:e>{}</m:e></m:d></m:oMath>",
            run("y"),
            run("="),
            run("a+b"),
            run("2"),
            run("c"),
            run("2"),
            run("i"),
            run("x"),
            run("z"),
        );
        assert_eq!(read(&formula), "y = (a+b)/2c²∑_i x[z)");
    }
}
