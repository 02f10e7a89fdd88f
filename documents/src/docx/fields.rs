//! Fields: a code, which is not shown, and its result, which is.

use std::collections::HashSet;

use super::auto_numbers::AutoNumbers;
use crate::{
    links::{Link, with_fragment},
    math,
    symbols::Symbols,
    xml::Element,
};

/// Deepest nesting of fields.
const MAX_OPEN: usize = 20;

/// The open fields of a part. A field whose end is missing ends with its paragraph, so that it does not
/// swallow the document.
#[derive(Debug, Default)]
pub(super) struct Fields {
    open: Vec<Field>,
    /// Addresses of the marks of the part that begin a field with an end.
    ended: HashSet<usize>,
    pub(super) numbers: AutoNumbers,
}

#[derive(Debug, Default)]
struct Field {
    code: String,
    /// Whether the code is complete, so that the result follows.
    shows: bool,
    /// Whether the field may go on in the next paragraph.
    has_end: bool,
    link: Option<Link>,
}

impl Fields {
    /// Returns the fields of a part, which continue `numbers`.
    pub(super) fn of_part(part: &Element, numbers: AutoNumbers) -> Self {
        let mut fields = Self { numbers, ..Self::default() };
        fields.find_ends(part, &mut Vec::new());
        fields
    }

    /// Finds the fields with an end. `begun` holds those that are open. Elements that may not be read are
    /// left out, so that no field waits for an end in one of them.
    fn find_ends(&mut self, parent: &Element, begun: &mut Vec<usize>) {
        for element in parent.elements() {
            match &*element.name {
                "del" | "moveFrom" | "Fallback" | "txbxContent" => {}
                "tr" | "tc" if is_deleted(element) => {}
                "fldChar" => match &*kind_of(element) {
                    "begin" => begun.push(address(element)),
                    "end" => self.ended.extend(begun.pop()),
                    _ => {}
                },
                _ => self.find_ends(element, begun),
            }
        }
    }

    /// Whether the next text is code, or the result of a field within another field's code.
    pub(super) fn is_code(&self) -> bool {
        self.open.iter().any(|field| !field.shows)
    }

    /// Adds a piece of code.
    pub(super) fn add_code(&mut self, code: &str) {
        if let Some(field) = self.open.last_mut() {
            field.code.push_str(code);
        }
    }

    /// Handles a mark: the begin of a field, the change from code to result, or the end.
    pub(super) fn read_mark(&mut self, mark: &Element, words: &mut String) {
        match &*kind_of(mark) {
            "begin" if self.open.len() < MAX_OPEN => {
                let has_end = self.ended.contains(&address(mark));
                self.open.push(Field { has_end, ..Field::default() });
            }
            "separate" => {
                if let Some(field) = self.open.last_mut() {
                    field.show_result(words);
                }
            }
            "end" => self.end(words),
            _ => {}
        }
    }

    /// Opens a field whose code stands in an attribute.
    pub(super) fn read_simple(&mut self, code: &str, has_result: bool, words: &mut String) {
        let mut field = Field { code: code.to_owned(), ..Field::default() };
        if has_result {
            field.show_result(words);
        }
        self.open.push(field);
    }

    /// Ends the innermost field.
    pub(super) fn end(&mut self, words: &mut String) {
        let Some(field) = self.open.pop() else { return };
        if !field.shows && !self.is_code() {
            words.push_str(&field.text_of_code(&mut self.numbers));
        }
        if let Some(link) = field.link {
            link.end(words);
        }
    }

    /// Ends all fields at the end of a paragraph, unless one of them is a code that ends further down.
    pub(super) fn end_paragraph(&mut self, words: &mut String) {
        let goes_on = self.open.iter().any(|field| field.has_end && !field.shows);
        while !self.open.is_empty() && !goes_on {
            self.end(words);
        }
        // A link leads from the words of one paragraph.
        for link in self.open.iter_mut().rev().filter_map(|field| field.link.take()) {
            link.end(words);
        }
    }
}

/// Whether a row or a cell of a table was deleted.
pub(super) fn is_deleted(part: &Element) -> bool {
    let has = |properties: &str, change: &str| {
        part.child(properties).is_some_and(|it| it.child(change).is_some())
    };
    has("trPr", "del") || has("tcPr", "cellDel")
}

fn kind_of(mark: &Element) -> String {
    mark.attribute("fldCharType").unwrap_or_default()
}

fn address(mark: &Element) -> usize {
    std::ptr::from_ref(mark).addr()
}

impl Field {
    fn show_result(&mut self, words: &mut String) {
        self.shows = true;
        self.link = address_of_link(&self.code).and_then(|address| Link::to(&address));
        if let Some(link) = &mut self.link {
            link.begin(words);
        }
    }

    /// Returns what a field without a stored result shows: a prompt, a formula, a sign, or
    /// a number.
    fn text_of_code(&self, numbers: &mut AutoNumbers) -> String {
        let code = self.code.trim();
        let (name, rest) = code.split_once(char::is_whitespace).unwrap_or((code, ""));
        let rest = rest.trim();
        match name.to_ascii_uppercase().as_str() {
            // The name of a macro is before its prompt.
            "MACROBUTTON" => {
                rest.split_once(char::is_whitespace).map_or("", |(_, prompt)| prompt).to_owned()
            }
            "EQ" => equation_text(rest),
            "SYMBOL" => find_symbol(rest).map(String::from).unwrap_or_default(),
            name => numbers.next_number(name, split_code(rest)).unwrap_or_default(),
        }
    }
}

/// Returns the address of the field `HYPERLINK`, with the place in its page (`\l`).
fn address_of_link(code: &str) -> Option<String> {
    let mut words = split_code(code);
    words.next().filter(|name| name.eq_ignore_ascii_case("HYPERLINK"))?;
    let (mut address, mut fragment) = (None, None);
    while let Some(word) = words.next() {
        match word {
            "\\l" => fragment = words.next(),
            // A hint and a frame, which are not shown.
            "\\o" | "\\t" => drop(words.next()),
            switch if switch.starts_with('\\') => {}
            word => address = address.or(Some(word)),
        }
    }
    address.map(|address| with_fragment(address, fragment))
}

/// Splits a code into its words; quotes hold words together.
fn split_code(code: &str) -> impl Iterator<Item = &str> {
    let mut rest = code;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let (word, behind) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        let is_end = rest.is_empty();
        rest = behind;
        (!is_end).then_some(word)
    })
}

/// Writes a formula of the field `EQ`. A fraction and a root are read; others stay as they are typed.
fn equation_text(code: &str) -> String {
    let inner = |name: &str| {
        let rest = code.get(..2).filter(|start| start.eq_ignore_ascii_case(name))?;
        let inner = code.get(rest.len()..)?.trim().strip_prefix('(')?.strip_suffix(')')?;
        let parts: Vec<&str> = inner.split([',', ';']).map(str::trim).collect();
        (!inner.contains(['(', '\\'])).then_some(parts)
    };
    match (inner("\\f").as_deref(), inner("\\r").as_deref()) {
        (Some([above, below]), _) => math::fraction_text(above, below),
        (_, Some([index, radicand])) => math::root_text(index, radicand),
        (_, Some([radicand])) => math::root_text("", radicand),
        _ => code.to_owned(),
    }
}

/// Returns the sign of the field `SYMBOL`: its code, and a font behind `\f`.
fn find_symbol(code: &str) -> Option<char> {
    let number = code.split_whitespace().next()?;
    let number = match number.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => number.parse().ok()?,
    };
    let letter = char::from_u32(number).filter(|letter| !letter.is_control())?;
    let font = code.split_once("\\f").and_then(|(_, rest)| {
        let rest = rest.trim();
        rest.strip_prefix('"')
            .map_or_else(|| rest.split_whitespace().next(), |it| it.split('"').next())
    });
    Some(font.and_then(Symbols::by_name).map_or(letter, |font| font.meaning_of_code(letter)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_without_a_result_show_what_their_code_draws() {
        for (code, shown) in [
            ("MACROBUTTON AcceptAll [Click and type]", "[Click and type]"),
            ("EQ \\f(3,4)", "3/4"),
            ("EQ \\r(3,27)", "∛(27)"),
            ("EQ \\b(\\f(a,c))", "\\b(\\f(a,c))"),
            ("SYMBOL 179 \\f \"Symbol\" \\s 11", "≥"),
            ("SYMBOL 163", "£"),
            ("PAGE", ""),
        ] {
            let field = Field { code: code.to_owned(), ..Field::default() };
            assert_eq!(field.text_of_code(&mut AutoNumbers::default()), shown, "{code}");
        }
    }

    #[test]
    fn addresses_of_links_are_found_in_their_spellings() {
        for (code, address) in [
            (" HYPERLINK \"https://a.org/b\" ", Some("https://a.org/b")),
            ("hyperlink https://a.org", Some("https://a.org")),
            (
                "HYPERLINK \"https://a.org/b\" \\o \"A hint\" \\l \"ebb\"",
                Some("https://a.org/b#ebb"),
            ),
            ("HYPERLINK \\l \"ebb\"", None),
            ("PAGE", None),
        ] {
            assert_eq!(address_of_link(code).as_deref(), address, "{code}");
        }
    }
}
