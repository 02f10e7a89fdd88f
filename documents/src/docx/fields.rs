//! Fields: a code, which is not shown, and what it came to, which is.

use crate::links::Link;

/// Fields within fields.
const MAX_OPEN: usize = 20;

/// The open fields of a paragraph. One whose end is missing, or stands in a later paragraph, ends with
/// the paragraph: it must not swallow the document.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<Field>);

#[derive(Debug, Default)]
struct Field {
    code: String,
    /// The code is over.
    shows: bool,
    link: Option<Link>,
}

impl Fields {
    /// Whether what comes next is code, or what an inner field gives to an outer one's code.
    pub(super) fn is_code(&self) -> bool {
        self.0.iter().any(|field| !field.shows)
    }

    /// A piece of code.
    pub(super) fn code(&mut self, code: &str) {
        if let Some(field) = self.0.last_mut() {
            field.code.push_str(code);
        }
    }

    /// A beginning, a change from the code to the text, or an end.
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

    /// A field whose code stands in an attribute.
    pub(super) fn simple(&mut self, code: &str, words: &mut String) {
        let mut field = Field { code: code.to_owned(), ..Field::default() };
        field.show(words);
        self.0.push(field);
    }

    /// The end of the paragraph.
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
