//! One call, whichever vendor's wire it came over.

use serde_json::Value;

use crate::{cache::Prefix, dice, extract, tokens};

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) model: String,
    /// Every text of the call, in order.
    pub(crate) prompt: String,
    /// The prompt's fingerprint, for the account; the same for every model.
    pub(crate) hash: u64,
    /// Input tokens, cached or not.
    pub(crate) input: u64,
    /// Of them: read from a cache.
    pub(crate) cache_read: u64,
    /// Of them: written to a cache, where writing is told.
    pub(crate) cache_written: u64,
    /// What may be cached.
    pub(crate) prefix: Option<Prefix>,
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
        let prefix = prompt.prefix();
        let model = model.to_owned();
        Self {
            model,
            prompt: prompt.all,
            hash,
            input,
            cache_read: 0,
            cache_written: 0,
            prefix,
            max_tokens,
            schema,
            user: prompt.user,
        }
    }

    /// The input that limits count: what is read from a cache that was asked for is free.
    pub(crate) fn counted_input(&self) -> u64 {
        let free = self.prefix.is_some_and(|prefix| prefix.asked_for);
        if free { self.input.saturating_sub(self.cache_read) } else { self.input }
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
    cached: Option<(usize, bool)>,
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

    /// What was said so far may be cached, though nobody asks: the beginning of every call alike.
    pub(crate) fn may_be_cached(&mut self) {
        self.cached = Some((self.all.len(), false));
    }

    /// What was said so far is to be cached; the last such mark counts.
    pub(crate) fn is_to_be_cached(&mut self) {
        self.cached = Some((self.all.len(), true));
    }

    fn prefix(&self) -> Option<Prefix> {
        let (end, asked_for) = self.cached?;
        Some(Prefix { hash: dice::hash(&self.all[..end]), tokens: tokens::count(end), asked_for })
    }

    /// Something else, in base64: it counts as input, by the bytes that it stands for.
    pub(crate) const fn base64(&mut self, data: &str) {
        self.binary += data.len() / 4 * 3;
    }
}
