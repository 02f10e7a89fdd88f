//! Layers of a crate: which file may import which.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use crate::circles::arrows;

/// The layers of `activities/src/`, from the bottom up, by prefixes of their files' paths. All other
/// files are at the top.
pub(crate) const ACTIVITIES: [&[&str]; 9] = [
    &["truncation_stats", "fingerprint", "host_rates", "memory", "metrics", "number"],
    &["archives", "storage"],
    &["attempt", "checkpoints", "failure", "heartbeat", "schema", "spans", "webhooks"],
    &["output"],
    &["services"],
    &["document/ask"],
    &["document/read"],
    &["document"],
    &["provider_batch"],
];

/// Imports from a layer to a higher one, by the paths in the crate. Panics on a layer without a file: its
/// name guards nothing.
pub(crate) fn upward_imports(root: &Path, layers: &[&[&str]]) -> Vec<(PathBuf, PathBuf)> {
    let above = root.parent().unwrap();
    let arrows: BTreeMap<PathBuf, BTreeSet<PathBuf>> = arrows(root);
    let named = |file: &Path| file.strip_prefix(above).unwrap().with_extension("");
    let layer = |file: &Path| {
        let all = layers.iter().enumerate();
        let all = all.flat_map(|(at, names)| names.iter().map(move |name| (at, name)));
        let of = all.filter(|(_, name)| file.starts_with(name));
        of.max_by_key(|(_, name)| name.len()).map_or(layers.len(), |(at, _)| at)
    };
    let files: BTreeSet<PathBuf> =
        arrows.iter().flat_map(|(from, to)| to.iter().chain([from])).map(|it| named(it)).collect();
    for name in layers.iter().copied().flatten() {
        assert!(files.iter().any(|file| file.starts_with(name)), "there is no {name}");
    }
    let all = arrows.iter().flat_map(|(from, to)| to.iter().map(|to| (named(from), named(to))));
    all.filter(|(from, to)| layer(from) < layer(to)).collect()
}
