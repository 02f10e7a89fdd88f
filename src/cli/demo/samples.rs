//! The demo's sample documents, which are part of the program, and its instructions.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use include_dir::{Dir, File, include_dir};

use crate::cli::output;

static DOCUMENTS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/samples/documents");

/// The instructions for each document.
pub(super) const INSTRUCTIONS: &str =
    "Summarise the document in three points, each of one sentence.";

/// Enough for three sentences.
pub(super) const MAX_OUTPUT_TOKENS: u32 = 400;

/// The worker's slots. More slots than documents would change nothing.
pub(super) const SLOTS: usize = 64;

/// The documents of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Samples {
    /// The folder of all samples.
    pub(super) folder: PathBuf,
    /// The documents to process, in order.
    pub(super) documents: Vec<PathBuf>,
}

/// Writes the samples into `folder`; `count` selects this many, spread evenly over all.
pub(super) fn write(folder: &Path, count: Option<u32>) -> anyhow::Result<Samples> {
    let mut all = Vec::new();
    gather(&DOCUMENTS, &mut all);
    all.sort_unstable_by_key(|file| file.path());
    let available = all.len();
    let wanted = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(available);
    if wanted > available {
        output::print_message(&format!(
            "there are {available} sample documents; all are processed"
        ));
    }
    let wanted = wanted.min(available);
    let mut documents = Vec::new();
    for file in (0..wanted).filter_map(|index| all.get(index * available / wanted)) {
        let path = folder.join(file.path());
        let unwritable = || format!("{} cannot be written", path.display());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(unwritable)?;
        }
        fs::write(&path, file.contents()).with_context(unwritable)?;
        documents.push(path);
    }
    Ok(Samples { folder: folder.to_owned(), documents })
}

fn gather<'a>(folder: &'a Dir<'a>, files: &mut Vec<&'a File<'a>>) {
    files.extend(folder.files());
    for below in folder.dirs() {
        gather(below, files);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_are_spread_over_all() {
        let folder = tempfile::tempdir().unwrap();
        let all = write(&folder.path().join("all"), None).unwrap().documents;
        assert!(all.len() >= 8);
        let some = write(&folder.path().join("some"), Some(4)).unwrap().documents;
        let end = |path: &PathBuf| path.file_name().unwrap().to_owned();
        assert_eq!(some.len(), 4);
        assert_eq!(end(&some[0]), end(&all[0]));
        assert!(all.iter().position(|path| end(path) == end(&some[3])).unwrap() >= all.len() / 2);
        assert_eq!(fs::read(&some[0]).unwrap(), fs::read(&all[0]).unwrap());
    }
}
