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
pub(crate) fn formula_text(formula: &Element) -> String {
    one_line(&row_text(formula))
}

/// Joins the contents of an element.
fn row_text(parent: &Element) -> String {
    let mut text = String::new();
    let is_alone = parent.elements().filter(|part| !part.name.ends_with("Pr")).count() < 2;
    let mut before = None;
    for node in &parent.children {
        match node {
            Node::Text(words) => text.push_str(words.trim()),
            Node::Element(element) => {
                let is_enclosed = is_alone || text.trim_end().ends_with(['(', '[', '{', '|', '‖']);
                let part = match &*element.name {
                    "mtable" | "m" if !is_enclosed => format!("[{}]", part_text(element)),
                    _ => part_text(element),
                };
                let sign = part.trim();
                let mut letters = sign.chars();
                let between = letters.next().is_some_and(|c| BETWEEN.contains(c))
                    && letters.next().is_none()
                    && is_operator(element);
                // A sign at the beginning of a row gets no spaces.
                if between && !text.trim().is_empty() {
                    text.push_str(&format!(" {sign} "));
                } else {
                    if is_ambiguous(before, &text, element, &part) {
                        text.push(' ');
                    }
                    text.push_str(&part);
                }
                if !part.is_empty() {
                    before = Some(element);
                }
            }
        }
    }
    text
}

/// Returns whether a part directly behind the text before it would have another meaning: 2 1/3 and
/// not 21/3, b^n x and not b^nx.
fn is_ambiguous(before: Option<&Element>, text: &str, element: &Element, part: &str) -> bool {
    let (Some(before), Some(last), Some(next)) = (before, text.chars().last(), part.chars().next())
    else {
        return false;
    };
    let begins_alone = match &*element.name {
        "mfrac" | "f" | "mmultiscripts" | "sPre" => true,
        // Its index is before it.
        "mroot" | "rad" => next == 'r',
        _ => false,
    };
    if begins_alone && (last.is_alphanumeric() || ")]}".contains(last)) {
        return !last.is_whitespace();
    }
    match &*before.name {
        "mfrac" | "f" => next.is_alphanumeric() || "([{√∛∜∑∏∫".contains(next),
        // Raised digits end by themselves, and so do braces.
        "msup" | "msub" | "msubsup" | "munder" | "mover" | "munderover" | "sSup" | "sSub"
        | "sSubSup" | "limLow" | "limUpp" | "mmultiscripts" | "sPre" => {
            last.is_alphanumeric() && !RAISED.contains(&last) && next.is_alphanumeric()
        }
        _ => false,
    }
}

/// Returns whether an element may be an operator: `mo` in MathML. Office uses `r` for signs and
/// letters.
fn is_operator(element: &Element) -> bool {
    matches!(&*element.name, "mo" | "r")
}

fn part_text(element: &Element) -> String {
    let parts: Vec<&Element> =
        element.elements().filter(|part| !part.name.ends_with("Pr")).collect();
    let at = |place: usize| parts.get(place).map(|part| row_or_part(part)).unwrap_or_default();
    let named = |name: &str| element.child(name).map(row_text).unwrap_or_default();
    match &*element.name {
        "mfrac" if has_no_line(element) => format!("C({}, {})", at(0).trim(), at(1).trim()),
        "mfrac" => fraction_text(&at(0), &at(1)),
        "f" if has_no_line(element) => {
            format!("C({}, {})", named("num").trim(), named("den").trim())
        }
        "f" => fraction_text(&named("num"), &named("den")),
        "mover" => accented(&at(0), &at(1)).unwrap_or_else(|| at(0) + &raised(&at(1))),
        "munder" => accented(&at(0), &at(1)).unwrap_or_else(|| at(0) + &lowered(&at(1))),
        "acc" => {
            let sign = property(element, "accPr", "chr").unwrap_or_else(|| "\u{302}".to_owned());
            accented(&named("e"), &sign).unwrap_or_else(|| named("e") + &raised(&sign))
        }
        "bar" => {
            let is_above = property(element, "barPr", "pos").is_some_and(|pos| pos == "top");
            let sign = if is_above { "\u{304}" } else { "\u{332}" };
            accented(&named("e"), sign).unwrap_or_default()
        }
        "msup" => base(at(0)) + &raised(&at(1)),
        "msub" => base(at(0)) + &lowered(&at(1)),
        "msubsup" => base(at(0)) + &lowered(&at(1)) + &raised(&at(2)),
        "munderover" => at(0) + &lowered(&at(1)) + &raised(&at(2)),
        "sSup" => base(named("e")) + &raised(&named("sup")),
        "sSub" => base(named("e")) + &lowered(&named("sub")),
        "sSubSup" => base(named("e")) + &lowered(&named("sub")) + &raised(&named("sup")),
        "sPre" => before_base(&named("sub"), &named("sup"), &named("e")),
        "mmultiscripts" => multiscripts(&parts),
        "limLow" => named("e") + &lowered(&named("lim")),
        "limUpp" => named("e") + &raised(&named("lim")),
        "nary" => {
            let sign = property(element, "naryPr", "chr").unwrap_or_else(|| "∫".to_owned());
            sign + &lowered(&named("sub")) + &raised(&named("sup")) + " " + &named("e")
        }
        "msqrt" => format!("√({})", row_text(element)),
        "mroot" => root_text(&at(1), &at(0)),
        "rad" => root_text(&named("deg"), &named("e")),
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
            let inner: Vec<String> = parts.iter().map(|part| row_text(part)).collect();
            fence("begChr", "(") + &inner.join(&fence("sepChr", "|")) + &fence("endChr", ")")
        }
        // Rows of a table, of a matrix, and of equations below each other.
        "mtable" | "m" | "eqArr" => {
            let rows: Vec<String> = parts.iter().map(|part| row_or_part(part)).collect();
            rows.join("; ")
        }
        "mtr" | "mlabeledtr" | "mr" => {
            let cells: Vec<String> = parts.iter().map(|part| row_text(part)).collect();
            cells.join(", ")
        }
        "func" => format!("{} {}", named("fName"), named("e")),
        "semantics" => at(0),
        "mspace" => " ".to_owned(),
        "annotation" | "annotation-xml" | "mphantom" | "del" | "moveFrom" => String::new(),
        // It only changes the place that its content takes, unless it says more.
        "phant" if is_off(element, "phantPr", "show") => String::new(),
        "r" if is_deleted(element) => String::new(),
        name if name.ends_with("Pr") => String::new(),
        "mo" => match row_text(element).as_str() {
            "," => ", ".to_owned(),
            sign => sign.to_owned(),
        },
        _ => row_text(element),
    }
}

fn row_or_part(element: &Element) -> String {
    if &*element.name == "e" { row_text(element) } else { part_text(element) }
}

/// Returns the value of a property; `None` for the default. An empty value means no character.
fn property(element: &Element, group: &str, name: &str) -> Option<String> {
    Some(element.child(group)?.child(name)?.attribute("val").unwrap_or_default())
}

fn is_off(element: &Element, group: &str, name: &str) -> bool {
    element.child(group).and_then(|group| group.child(name)).is_some_and(|it| it.is_off("val"))
}

/// Whether a run is a tracked deletion.
fn is_deleted(run: &Element) -> bool {
    let changes = |change| run.all("rPr").iter().any(|it| it.child(change).is_some());
    changes("del") || changes("moveFrom")
}

/// Writes a fraction.
pub(crate) fn fraction_text(above: &str, below: &str) -> String {
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

/// Returns whether a fraction has no line: a binomial.
fn has_no_line(fraction: &Element) -> bool {
    let line = fraction.attribute("linethickness");
    let width = line.as_deref().map(|line| line.trim_end_matches(|c: char| !c.is_ascii_digit()));
    width.is_some_and(|width| width.parse() == Ok(0.0_f64))
        || property(fraction, "fPr", "type").is_some_and(|kind| kind == "noBar")
}

/// Writes a root with its index.
pub(crate) fn root_text(index: &str, radicand: &str) -> String {
    match index.trim() {
        "" | "2" => format!("√({radicand})"),
        "3" => format!("∛({radicand})"),
        "4" => format!("∜({radicand})"),
        index => format!("root[{index}]({radicand})"),
    }
}

/// Writes what has an exponent or index. A fraction or a sum gets brackets.
fn base(text: String) -> String {
    let mut depth = 0_i32;
    for letter in text.trim().chars() {
        match letter {
            '(' | '[' | '{' | '⟨' => depth += 1,
            ')' | ']' | '}' | '⟩' => depth -= 1,
            '/' | ' ' if depth == 0 => return format!("({})", text.trim()),
            _ if depth == 0 && BETWEEN.contains(letter) && text.trim().chars().count() > 1 => {
                return format!("({})", text.trim());
            }
            _ => {}
        }
    }
    text
}

/// Writes a sign above or below a letter as a combining character. Returns `None` for other signs.
fn accented(base: &str, sign: &str) -> Option<String> {
    let mut signs = sign.trim().chars();
    let mark = match signs.next().filter(|_| signs.next().is_none())? {
        '¯' | '‾' | 'ˉ' => '\u{304}',
        '_' => '\u{332}',
        '^' | 'ˆ' => '\u{302}',
        '~' | '˜' | '∼' => '\u{303}',
        '→' | '⟶' | '⇀' => '\u{20d7}',
        '˙' | '.' => '\u{307}',
        '¨' => '\u{308}',
        'ˇ' => '\u{30c}',
        '˘' => '\u{306}',
        '´' => '\u{301}',
        '`' => '\u{300}',
        mark @ ('\u{300}'..='\u{36f}' | '\u{20d0}'..='\u{20ff}') => mark,
        _ => return None,
    };
    let base = base.trim();
    Some(match base.chars().count() {
        0 => String::new(),
        1 => format!("{base}{mark}"),
        _ => format!("({base}){mark}"),
    })
}

/// Writes an index and an exponent before their base.
fn before_base(index: &str, exponent: &str, base: &str) -> String {
    let scripts = script('^', exponent.trim()) + &lowered(index);
    if scripts.is_empty() { base.to_owned() } else { format!("{scripts} {base}") }
}

/// Writes a base with pairs of index and exponent behind it, and before it those after the mark
/// `mprescripts`.
fn multiscripts(parts: &[&Element]) -> String {
    let Some((first, scripts)) = parts.split_first() else { return String::new() };
    let mark = scripts.iter().position(|part| &*part.name == "mprescripts");
    let (behind, before) = scripts.split_at(mark.unwrap_or(scripts.len()));
    let pair = |pair: &[&Element]| {
        let at = |place: usize| pair.get(place).map(|part| row_or_part(part)).unwrap_or_default();
        (at(0), at(1))
    };
    let mut text = base(row_or_part(first));
    for (index, exponent) in behind.chunks(2).map(pair) {
        text += &(lowered(&index) + &raised(&exponent));
    }
    for (index, exponent) in before.get(1..).unwrap_or_default().chunks(2).map(pair) {
        text = before_base(&index, &exponent, &text);
    }
    text
}

/// Converts raised digits, signs and `n` to superscript characters, so that 10⁻⁶ does not become
/// 10-6. A term of letters and operators is written as in TeX. Returns `None` for other text, which
/// keeps its meaning on the line.
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
    let raised = raised.filter(|_| text.contains(|c: char| c.is_ascii_digit() || c == 'n'));
    raised.or_else(|| is_term(text).then(|| script('^', text.trim())))
}

/// Returns whether a raised text is a term with letters, such as -kt. Words, and the ends of 1st and
/// 2nd, are none.
fn is_term(text: &str) -> bool {
    const MAX_LENGTH: usize = 12;
    text.chars().count() <= MAX_LENGTH
        && text.contains(['+', '-', '−', '·', '×', '/', '*', '='])
        && text.contains(char::is_alphabetic)
        && text.chars().all(|c| c.is_alphanumeric() || " +-−·×/*=().".contains(c))
}

/// Converts lowered digits and signs to subscript characters. Returns `None` for other text.
pub(crate) fn index(text: &str) -> Option<String> {
    let lowered: Option<String> = text
        .chars()
        .map(|c| match c {
            '+' => Some('₊'),
            '-' | '−' => Some('₋'),
            c if c.is_whitespace() => Some(c),
            c => char::from_u32(u32::from('₀') + c.to_digit(10)?),
        })
        .collect();
    lowered.filter(|_| text.contains(|c: char| c.is_ascii_digit()))
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
        formula_text(&xml::parse(xml.as_bytes(), Format::Odt).unwrap())
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
            "∑_{k = 1}^n(a, b)[1, 2; 3]"
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
        assert_eq!(read(&formula), "y = (a+b)/2 c²∑_i x[z)");
    }

    #[test]
    fn different_values_have_different_lines() {
        for (formula, line) in [
            ("<mrow><mn>4</mn><mfrac><mn>1</mn><mn>5</mn></mfrac></mrow>", "4 1/5"),
            ("<mrow><mfrac><mn>1</mn><mn>5</mn></mfrac><mi>y</mi></mrow>", "1/5 y"),
            ("<mrow><mn>7</mn><mroot><mn>27</mn><mn>3</mn></mroot></mrow>", "7∛(27)"),
            ("<mrow><mn>7</mn><mroot><mn>32</mn><mn>5</mn></mroot></mrow>", "7 root[5](32)"),
            ("<mfrac linethickness='0pt'><mi>m</mi><mi>j</mi></mfrac>", "C(m, j)"),
            ("<msup><mfrac><mn>1</mn><mn>2</mn></mfrac><mn>3</mn></msup>", "(1/2)³"),
            (
                "<msup><mrow><mo>(</mo><mi>a</mi><mo>+</mo><mi>b</mi><mo>)</mo></mrow><mn>2</mn></msup>",
                "(a + b)²",
            ),
            ("<mover accent='true'><mi>y</mi><mo>¯</mo></mover>", "y\u{304}"),
            ("<mover><mi>AB</mi><mo>→</mo></mover>", "(AB)\u{20d7}"),
            (
                "<mmultiscripts><mi>C</mi><mprescripts/><mn>6</mn><mn>14</mn></mmultiscripts>",
                "^{14}_6 C",
            ),
            (
                "<mrow><munderover><mo>∑</mo><mi>j</mi><mi>m</mi></munderover><mi>j</mi></mrow>",
                "∑_j^m j",
            ),
            ("<mrow><msup><mi>b</mi><mi>n</mi></msup><mi>x</mi></mrow>", "b^n x"),
            (
                "<mrow><mtable><mtr><mtd>1</mtd><mtd>2</mtd></mtr></mtable><mi>p</mi></mrow>",
                "[1, 2]p",
            ),
            (
                "<mrow><mo>(</mo><mtable><mtr><mtd>1</mtd></mtr><mtr><mtd>2</mtd></mtr></mtable><mo>)</mo></mrow>",
                "(1; 2)",
            ),
            ("<f><fPr><type val='noBar'/></fPr><num>m</num><den>j</den></f>", "C(m, j)"),
            ("<acc><accPr><chr val='\u{303}'/></accPr><e>q</e></acc>", "q\u{303}"),
            ("<bar><barPr><pos val='top'/></barPr><e>x</e></bar>", "x\u{304}"),
            ("<sPre><sub>92</sub><sup>235</sup><e>U</e></sPre>", "^{235}_{92} U"),
            ("<rad><radPr/><deg>3</deg><e>8</e></rad>", "∛(8)"),
        ] {
            assert_eq!(read(&format!("<math>{formula}</math>")), line, "{formula}");
        }
    }

    #[test]
    fn raised_terms_are_told_from_raised_words() {
        for (raised, line) in [
            ("m+1", Some("^{m+1}")),
            ("-at", Some("^{-at}")),
            ("-6", Some("⁻⁶")),
            ("st", None),
            ("TM", None),
            ("a,b", None),
            ("a well-known note", None),
        ] {
            assert_eq!(exponent(raised).as_deref(), line, "{raised}");
        }
        assert_eq!((index("12").as_deref(), index("max")), (Some("₁₂"), None));
    }
}
