//! A sample of a batch's documents, to see the outcome before paying for the whole.
//!
//! The strata are kinds of documents by name and size. Each is drawn in proportion to its number,
//! so that neither a few spreadsheets among many letters nor long documents among short ones are
//! missed. The instructions are the seed: equal instructions draw equal samples for every model. A
//! later batch of all documents with the same output finds the sample's answers there.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    fingerprint::{Fingerprint, hash},
    output::job::Document,
};

/// The documents of a batch, from which a sample is drawn: sixteen bytes for each.
#[derive(Debug)]
pub(crate) struct Lots {
    seed: String,
    /// By stratum: the lots, and the places of their documents in the batch.
    strata: BTreeMap<(String, u32), Vec<(u64, usize)>>,
    documents: usize,
}

impl Lots {
    /// No documents yet.
    pub(crate) fn new(seed: Fingerprint) -> Self {
        Self { seed: seed.to_string(), strata: BTreeMap::new(), documents: 0 }
    }

    /// Adds the next document of the batch.
    pub(crate) fn add(&mut self, document: &Document) {
        let lot = hash([self.seed.as_bytes(), document.id.as_str().as_bytes()]);
        self.strata.entry(stratum(document)).or_default().push((lot, self.documents));
        self.documents += 1;
    }

    /// Draws `count` documents, or all of fewer. Returns their places in the batch, from 0.
    pub(crate) fn draw(self, count: usize) -> BTreeSet<usize> {
        let all = self.documents;
        if all <= count {
            return (0..all).collect();
        }
        // Orders the documents by stratum, and within each by their lots, and picks them at even
        // distances: every stratum gets its share to the nearest document.
        let ordered: Vec<usize> = self
            .strata
            .into_values()
            .flat_map(|mut stratum| {
                stratum.sort_unstable();
                stratum.into_iter().map(|(_, index)| index)
            })
            .collect();
        let teeth = (0..count).map(|tooth| (2 * tooth + 1) * all / (2 * count));
        teeth.filter_map(|place| ordered.get(place).copied()).collect()
    }
}

/// Extension of the document's name, and its size as a power of four.
fn stratum(document: &Document) -> (String, u32) {
    let name = document.uri.rsplit('/').next().unwrap_or_default();
    let name = name.split('#').next().unwrap_or_default();
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    let size = document.version.stamp.as_ref().map(|stamp| stamp.size);
    let size = size.or_else(|| document.text.as_ref().map(|text| text.len() as u64));
    (ending, size.map_or(0, |size| (64 - size.leading_zeros()) / 2))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;
    use tidegate_types::DocumentId;

    use super::*;

    fn documents() -> Vec<Document> {
        let named = |number: usize, ending: &str| {
            let name = format!("{number:04}.{ending}");
            Document::file(DocumentId::from_relative_path(&name), format!("file:///in/{name}"))
        };
        let letters = (0..900).map(|number| named(number, "txt"));
        letters.chain((900..1_000).map(|number| named(number, "xlsx"))).collect()
    }

    fn names(count: usize, seed: u32) -> Vec<String> {
        let (documents, mut lots) = (documents(), Lots::new(Fingerprint::of_json(&json!(seed))));
        documents.iter().for_each(|document| lots.add(document));
        lots.draw(count).into_iter().map(|place| documents[place].id.to_string()).collect()
    }

    #[test]
    fn every_kind_has_its_part_and_the_same_question_draws_the_same() {
        for count in [10, 20, 50] {
            let sample = names(count, 1);
            assert_eq!(sample.len(), count);
            let sheets = sample.iter().filter(|name| name.contains("xlsx")).count();
            assert_eq!(sheets, count / 10, "{sample:?}");
            assert!(sample.is_sorted(), "in their order");
            assert_eq!(sample, names(count, 1));
            assert_ne!(sample, names(count, 2), "another question draws others");
        }
    }

    #[test]
    fn it_is_drawn_at_random_and_never_twice() {
        let drawn: BTreeSet<String> = (0..40).flat_map(|seed| names(20, seed)).collect();
        // 800 draws of 1,000 give 550 different values on average.
        assert!((450..650).contains(&drawn.len()), "{}", drawn.len());
        assert_eq!(names(1_000, 1).len(), 1_000);
        assert_eq!(names(5_000, 1).len(), 1_000, "no more than there are");
        let all: BTreeSet<String> = names(999, 3).into_iter().collect();
        assert_eq!(all.len(), 999);
    }
}
