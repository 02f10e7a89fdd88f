//! One call, whichever vendor's wire it came over.

use serde_json::Value;

use crate::{
    cache::Prefix,
    extract,
    picture::{BadPicture, Picture},
    rng,
    texts::Texts,
    tokens,
};

/// Pixels of an edge that no vendor takes more of.
const MAX_EDGE: u32 = 8_000;

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
    /// Of them: written to a cache, where the vendor reports that.
    pub(crate) cache_written: u64,
    /// Beginnings that may be cached, the shortest first.
    pub(crate) prefixes: Vec<Prefix>,
    pub(crate) max_tokens: u64,
    /// The schema that the answer must satisfy.
    pub(crate) schema: Option<Value>,
    /// The tool that must be called, whose arguments satisfy the schema.
    pub(crate) tool: Option<String>,
    /// Texts to embed, of a call that wants vectors.
    pub(crate) texts: Option<Texts>,
    /// The last user message: where the document is looked for.
    user: String,
}

impl Call {
    pub(crate) fn new(model: &str, max_tokens: u64, schema: Option<Value>, prompt: Prompt) -> Self {
        let input = (tokens::count(prompt.all.len() + prompt.binary) + prompt.pictures).max(1);
        let hash = prompt.fingerprint();
        let model = model.to_owned();
        Self {
            model,
            prompt: prompt.all,
            hash,
            input,
            cache_read: 0,
            cache_written: 0,
            prefixes: prompt.prefixes,
            max_tokens,
            schema,
            tool: None,
            texts: None,
            user: prompt.user,
        }
    }

    /// The input that limits count: what is read from a cache that was asked for is free.
    pub(crate) fn counted_input(&self) -> u64 {
        let free = self.prefixes.iter().any(|prefix| prefix.asked_for);
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
    /// Bytes that are no text, and what tells them from others.
    binary: usize,
    binary_hash: u64,
    /// Tokens of its pictures.
    pictures: u64,
    /// The fault for which the vendor refuses the call.
    fault: Option<BadPicture>,
    prefixes: Vec<Prefix>,
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

    /// Marks the text so far as one that the vendor may cache without being asked: a beginning that
    /// similar calls share.
    pub(crate) fn may_be_cached(&mut self) {
        self.mark(false);
    }

    /// Marks the text so far as one that the caller wants cached. Every such mark counts: the longest
    /// remembered one is read.
    pub(crate) fn is_to_be_cached(&mut self) {
        self.mark(true);
    }

    fn mark(&mut self, asked_for: bool) {
        let tokens = tokens::count(self.all.len() + self.binary) + self.pictures;
        self.prefixes.push(Prefix { hash: self.fingerprint(), tokens, asked_for });
    }

    /// How many marks there are.
    pub(crate) const fn marks(&self) -> usize {
        self.prefixes.len()
    }

    /// Something else, in base64 or a data URL of it: it counts as input, by the bytes that it
    /// stands for.
    pub(crate) fn base64(&mut self, data: &str) {
        let data = data.split_once(";base64,").map_or(data, |(_, data)| data);
        self.binary += data.len() / 4 * 3;
        self.binary_hash = rng::draw(&[self.binary_hash, rng::hash(data)]);
    }

    /// A picture, in base64 or a data URL of it: it counts what the vendor says for its pixels.
    pub(crate) fn picture(
        &mut self,
        data: &str,
        media_type: Option<&str>,
        most_bytes: usize,
        count: fn(Picture) -> u64,
    ) {
        self.binary_hash = rng::draw(&[self.binary_hash, rng::hash(data)]);
        let fault = match Picture::read(data) {
            Err(fault) => fault,
            Ok(picture)
                if picture.bytes > most_bytes || picture.width.max(picture.height) > MAX_EDGE =>
            {
                let text =
                    format!("image exceeds {most_bytes} bytes or {MAX_EDGE} pixels: {picture:?}");
                BadPicture(text)
            }
            Ok(picture) if media_type.is_some_and(|stated| stated != picture.kind.media_type()) => {
                let text = format!("the image appears to be a {} image", picture.kind.media_type());
                BadPicture(text)
            }
            Ok(picture) => {
                self.pictures += count(picture);
                return;
            }
        };
        self.fault.get_or_insert(fault);
    }

    /// The fault for which the vendor refuses it.
    pub(crate) fn check(&mut self) -> Result<(), BadPicture> {
        self.fault.take().map_or(Ok(()), Err)
    }

    /// A hash of the text and of documents that are no text.
    fn fingerprint(&self) -> u64 {
        let text = rng::hash(&self.all);
        if self.binary_hash == 0 { text } else { rng::draw(&[text, self.binary_hash]) }
    }
}
