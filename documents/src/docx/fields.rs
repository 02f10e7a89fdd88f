//! Fields: a code, which is not shown, and its result, which is.

use crate::links::Link;

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
    pub(super) fn code(&mut self, code: &str) {
        if let Some(field) = self.0.last_mut() {
            field.code.push_str(code);
        }
    }

    /// Handles a mark: the begin of a field, the change from code to result, or the end.
    pub(super) fn mark(&mut self, kind: &str, words: &mut String) {
        match kind {
            "begin" if self.0.len() < MAX_OPEN => self.0.push(Field::default()),
            "separate" => {
                if let Some(field) = self.0.last_mut() {
                    field.show(words);
                }
            }
            "end" => {
                if let Some(link) = self.0.pop().and_then(|field| field.link) {
                    link.end(words);
                }
            }
            _ => {}
        }
    }

    /// Opens a field whose code stands in an attribute.
    pub(super) fn simple(&mut self, code: &str, words: &mut String) {
        let mut field = Field { code: code.to_owned(), ..Field::default() };
        field.show(words);
        self.0.push(field);
    }

    /// Ends all fields at the end of the paragraph.
    pub(super) fn end_all(&mut self, words: &mut String) {
        while !self.0.is_empty() {
            self.mark("end", words);
        }
    }
}

impl Field {
    fn show(&mut self, words: &mut String) {
        self.shows = true;
        let address = self.code.trim().strip_prefix("HYPERLINK");
        let address =
            address.and_then(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
        self.link = address.and_then(Link::to);
        if let Some(link) = &mut self.link {
            link.begin(words);
        }
    }
}
