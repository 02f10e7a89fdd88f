//! One call, whichever vendor's wire it came over.

use serde_json::Value;

use crate::{dice, extract, tokens};

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) model: String,
    /// Every text of the call, in order.
    pub(crate) prompt: String,
    /// The prompt's fingerprint, for the account; the same for every model.
    pub(crate) hash: u64,
    /// Input tokens.
    pub(crate) input: u64,
    pub(crate) max_tokens: u64,
    /// What the answer must satisfy.
    pub(crate) schema: Option<Value>,
    /// The last user message: where the document is looked for.
    user: String,
}

impl Call {
    pub(crate) fn new(model: &str, max_tokens: u64, schema: Option<Value>, prompt: Prompt) -> Self {
        let input = tokens::count(prompt.all.len() + prompt.binary).max(1);
        let hash = dice::hash(&prompt.all);
        Self { model: model.to_owned(), prompt: prompt.all, hash, input, max_tokens, schema, user: prompt.user }
    }

    /// The text that the answer is about.
    pub(crate) fn document(&self) -> &str {
        extract::document(&self.user)
    }
}

/// The texts of a call while it is read.
#[derive(Debug, Default)]
pub(crate) struct Prompt {
    all: String,
    user: String,
    binary: usize,
}

impl Prompt {
    /// A new message begins.
    pub(crate) fn message(&mut self, role: &str) {
        if role == "user" {
            self.user.clear();
        }
    }

    /// A text of a message.
    pub(crate) fn text(&mut self, role: &str, text: &str) {
        for (whole, wanted) in [(&mut self.all, true), (&mut self.user, role == "user")] {
            if wanted {
                if !whole.is_empty() {
                    whole.push_str("\n\n");
                }
                whole.push_str(text);
            }
        }
    }

    /// Something else, in base64: it counts as input, by the bytes that it stands for.
    pub(crate) const fn base64(&mut self, data: &str) {
        self.binary += data.len() / 4 * 3;
    }
}
