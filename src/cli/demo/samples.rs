//! What the demo works on: the sample documents, and what each is asked.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::Context;

use crate::cli::{exit::usage, output};

/// Where they lie, below the project's folder.
const FOLDER: &str = "samples/documents";

/// What each document is asked.
pub(super) const INSTRUCTIONS: &str =
    "Summarise the document in three points, each of one sentence.";

/// Enough for three sentences.
pub(super) const MAX_OUTPUT_TOKENS: u32 = 400;

/// Callers at once, with tidegate and without it. More than there are documents would change
/// nothing.
pub(super) const CALLERS: usize = 64;

/// The documents of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Samples {
    /// The folder of all.
    pub(super) folder: PathBuf,
    /// Those that are processed, in order.
    pub(super) documents: Vec<PathBuf>,
    /// Whether these are all of the folder.
    pub(super) all: bool,
}

/// Finds the samples, in the current folder or above it; `count` takes so many, spread evenly over
/// the whole.
pub(super) fn find(count: Option<u32>) -> anyhow::Result<Samples> {
    let here = env::current_dir().context("the current folder cannot be read")?;
    let folder = here.ancestors().map(|above| above.join(FOLDER)).find(|folder| folder.is_dir()).ok_or_else(|| {
        usage(format!(
            "there is no {FOLDER} here or above; run the demo in the folder of the tidegate project (where its Makefile lies)"
        ))
    })?;
    let mut documents = Vec::new();
    gather(&folder, &mut documents)?;
    documents.sort();
    if documents.is_empty() {
        return Err(usage(format!(
            "{} holds no .md or .txt file; `git checkout samples` brings them back",
            folder.display()
        )));
    }
    let available = documents.len();
    let wanted = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(available);
    if wanted > available {
        output::say(&format!("there are {available} sample documents; all are processed"));
    }
    let wanted = wanted.min(available);
    let documents: Vec<PathBuf> = (0..wanted)
        .filter_map(|index| documents.get(index * available / wanted).cloned())
        .collect();
    Ok(Samples { folder, all: documents.len() == available, documents })
}

fn gather(folder: &Path, documents: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let unreadable = || format!("{} cannot be read", folder.display());
    for entry in fs::read_dir(folder).with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        if path.is_dir() {
            gather(&path, documents)?;
        } else if path.extension().is_some_and(|extension| extension == "md" || extension == "txt")
        {
            documents.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_are_spread_over_all() {
        let all = find(None).unwrap();
        assert!(all.all && all.documents.len() >= 8);
        let some = find(Some(4)).unwrap();
        assert!(!some.all);
        assert_eq!(some.documents.len(), 4);
        assert_eq!(some.documents[0], all.documents[0]);
        assert!(some.documents[3] >= all.documents[all.documents.len() / 2]);
    }
}
