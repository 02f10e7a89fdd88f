//! Fields: a code, which is not shown, and its result, which is.

use crate::{links::Link, math, symbols::Symbols};

/// Deepest nesting of fields.
const MAX_OPEN: usize = 20;

/// The open fields of a paragraph. A field ends with its paragraph even if its end is missing or comes
/// later, so that it does not swallow the document.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<Field>);

#[derive(Debug, Default)]
struct Field {
    code: String,
    /// Whether the code is complete, so that the result follows.
    shows: bool,
    link: Option<Link>,
}

impl Fields {
    /// Whether the next text is code, or the result of a field within another field's code.
    pub(super) fn is_code(&self) -> bool {
        self.0.iter().any(|field| !field.shows)
    }

    /// Adds a piece of code.
    pub(super) fn add_code(&mut self, code: &str) {
        if let Some(field) = self.0.last_mut() {
            field.code.push_str(code);
        }
    }

    /// Handles a mark: the begin of a field, the change from code to result, or the end.
    pub(super) fn read_mark(&mut self, kind: &str, words: &mut String) {
        match kind {
            "begin" if self.0.len() < MAX_OPEN => self.0.push(Field::default()),
            "separate" => {
                if let Some(field) = self.0.last_mut() {
                    field.show_result(words);
                }
            }
            "end" => {
                let Some(field) = self.0.pop() else { return };
                if !field.shows && !self.is_code() {
                    words.push_str(&field.text_of_code());
                }
                if let Some(link) = field.link {
                    link.end(words);
                }
            }
            _ => {}
        }
    }

    /// Opens a field whose code stands in an attribute.
    pub(super) fn read_simple(&mut self, code: &str, words: &mut String) {
        let mut field = Field { code: code.to_owned(), ..Field::default() };
        field.show_result(words);
        self.0.push(field);
    }

    /// Ends all fields at the end of the paragraph.
    pub(super) fn end_all(&mut self, words: &mut String) {
        while !self.0.is_empty() {
            self.read_mark("end", words);
        }
    }
}

impl Field {
    fn show_result(&mut self, words: &mut String) {
        self.shows = true;
        let address = self.code.trim().strip_prefix("HYPERLINK");
        let address =
            address.and_then(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
        self.link = address.and_then(Link::to);
        if let Some(link) = &mut self.link {
            link.begin(words);
        }
    }

    /// Returns what a field without a stored result shows: a prompt, a formula, or a sign.
    fn text_of_code(&self) -> String {
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
            _ => String::new(),
        }
    }
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
            let (mut fields, mut words) = (Fields::default(), String::new());
            fields.read_mark("begin", &mut words);
            fields.add_code(code);
            fields.read_mark("end", &mut words);
            assert_eq!(words, shown, "{code}");
        }
    }
}
