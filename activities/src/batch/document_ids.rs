//! Ids that are unique in a batch, even where it is listed page by page.

use std::collections::{BTreeMap, HashSet};

use crate::{
    fingerprint::{Key, key},
    output::job::Document,
};

/// The ids of all earlier pages: eight bytes for each, and sixteen more where a source can name a
/// file twice.
#[derive(Debug, Default)]
pub struct DocumentIds {
    /// Sorted.
    taken: Vec<Key>,
    /// Sorted: the files of a source that can name one twice, or the `custom_id`s of a file of
    /// requests.
    seen: Vec<File>,
    /// The highest number given so far, for each id that several documents share.
    numbers: BTreeMap<Key, u64>,
}

/// A file of a source, by its id and its URI; or a request, by its `custom_id` and its line.
pub type File = (Key, Key);

/// The ids that a page adds.
#[derive(Debug)]
pub(super) struct Added(DocumentIds);

impl DocumentIds {
    /// The key of a file.
    pub(super) fn file(document: &Document) -> File {
        (key(document.id.as_str()), key(&document.uri))
    }

    /// Whether an earlier page had this file.
    pub(super) fn contains_file(&self, file: &File) -> bool {
        self.seen.binary_search(file).is_ok()
    }

    /// The line of an earlier page with a request of this `custom_id`.
    pub(super) fn line_of(&self, custom_id: Key) -> Option<u64> {
        let at = self.seen.partition_point(|(id, _)| *id < custom_id);
        self.seen.get(at).filter(|(id, _)| *id == custom_id).map(|(_, line)| *line)
    }

    /// Gives the documents of a page their ids, and orders them by these. The first document of an id
    /// keeps it; later ones are numbered in the order of the source, so that ids are equal in every run
    /// over one source. Returns how many were numbered.
    pub(super) fn assign(
        &self,
        mut documents: Vec<Document>,
        files: Vec<File>,
    ) -> (Vec<Document>, u64, Added) {
        let (mut taken, mut later) = (HashSet::with_capacity(documents.len()), Vec::new());
        for (place, document) in documents.iter().enumerate() {
            let id = key(document.id.as_str());
            if self.is_taken(id) || !taken.insert(id) {
                later.push(place);
            }
        }
        let renamed = later.len() as u64;
        let mut numbers: BTreeMap<Key, u64> = BTreeMap::new();
        for place in later {
            let document = &mut documents[place];
            let own = key(document.id.as_str());
            let before = || self.numbers.get(&own).copied().unwrap_or(1);
            let number = numbers.entry(own).or_insert_with(before);
            let id = loop {
                *number += 1;
                let id = document.id.numbered(*number);
                let key = key(id.as_str());
                if !self.is_taken(key) && taken.insert(key) {
                    break id;
                }
            };
            // The URI of a record ends in its id.
            let is_record = document.uri.contains('#')
                && (document.text.is_some() || document.unreadable.is_some());
            if is_record {
                document.uri = format!("{}~{number}", document.uri);
            }
            document.id = id;
        }
        documents.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        let mut taken: Vec<Key> = taken.into_iter().collect();
        taken.sort_unstable();
        (documents, renamed, Added(Self { taken, seen: files, numbers }))
    }

    fn is_taken(&self, id: Key) -> bool {
        self.taken.binary_search(&id).is_ok()
    }

    /// Adds the ids of one more page.
    pub(super) fn add(&mut self, Added(added): &Added) {
        // A stable sort finds the two sorted runs, and merges them.
        self.taken.extend(&added.taken);
        self.taken.sort();
        self.seen.extend(&added.seen);
        self.seen.sort();
        self.numbers.extend(&added.numbers);
    }
}

/// After every `TOGETHER` pages, one object has the ids of all earlier pages, so that the next
/// worker reads few objects.
const TOGETHER: u32 = 32;

/// Returns the pages whose stored ids together cover the first `pages` pages.
pub(super) fn stored_pages(pages: u32) -> std::ops::Range<u32> {
    (pages / TOGETHER * TOGETHER).saturating_sub(1)..pages
}

impl DocumentIds {
    /// The content of the object that is stored with a page.
    pub(super) fn stored_after(&self, page: u32, added: &Added) -> Vec<u8> {
        if (page + 1).is_multiple_of(TOGETHER) { to_bytes(self) } else { to_bytes(&added.0) }
    }
}

impl Added {
    /// Parses the content of such an object; returns `None` for anything else.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (numbers, []) = bytes.as_chunks::<8>() else { return None };
        let mut numbers = numbers.iter().map(|number| u64::from_le_bytes(*number));
        let counts = [numbers.next()?, numbers.next()?, numbers.next()?];
        let [taken, seen, numbered] = counts.map(|count| usize::try_from(count).ok());
        let taken = numbers.by_ref().take(taken?).collect();
        let mut pairs = std::iter::from_fn(|| Some((numbers.next()?, numbers.next()?)));
        let seen = pairs.by_ref().take(seen?).collect();
        let numbers = pairs.take(numbered?).collect();
        Some(Self(DocumentIds { taken, seen, numbers }))
    }
}

/// Encodes three counts, then as many numbers of eight bytes each; two numbers for a pair.
fn to_bytes(DocumentIds { taken, seen, numbers }: &DocumentIds) -> Vec<u8> {
    let counts = [taken.len(), seen.len(), numbers.len()].map(|count| count as u64);
    let pairs = seen.iter().copied().chain(numbers.iter().map(|(id, number)| (*id, *number)));
    let all = counts.into_iter().chain(taken.iter().copied());
    all.chain(pairs.flat_map(|(one, other)| [one, other])).flat_map(u64::to_le_bytes).collect()
}
