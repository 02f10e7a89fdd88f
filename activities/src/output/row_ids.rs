//! Ids of records without names. An id is the number of its row, so an inserted or removed row
//! would change the ids of all later rows. Ids are therefore bound to the rows' content: a row
//! whose content has a result in the output keeps that result's id, even if the row has moved.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    ops::Bound,
};

use futures::{StreamExt, TryStreamExt, stream};
use tidegate_types::DocumentId;

use crate::{
    failure::Failure,
    fingerprint::Fingerprint,
    output::{
        job::Document,
        jsonl::lines,
        layout::{self, READ_AHEAD},
        result::read_line,
        sealed::{self, IndexLine},
    },
    storage::{Error, Location},
};

/// The contents of the records that an output has results for, by their ids.
#[derive(Debug, Default)]
pub(crate) struct RowIds {
    contents: BTreeMap<DocumentId, Fingerprint>,
    /// The ids of each content.
    ids: HashMap<Fingerprint, BTreeSet<DocumentId>>,
}

/// Stands between a file's id and a row's name in the row's id.
const OF_FILE: &str = "__";

impl RowIds {
    /// Reads them from an output, for records of these files.
    ///
    /// # Errors
    /// `Transient` when a store fails.
    pub(crate) async fn load(output: &Location, files: &[DocumentId]) -> Result<Self, Failure> {
        let results = output.child("results");
        let names = match results.names().await {
            Ok(names) => names,
            Err(error @ Error::Failed(_)) => return Err(error.into()),
            // Workers that may not list objects find no results here.
            Err(_) => return Ok(Self::default()),
        };
        let files: HashSet<&str> = files.iter().map(DocumentId::as_str).collect();
        let is_ours = |name: &str| is_of(name, &files);
        let has_parts = names.iter().any(|name| layout::part_number(name).is_some());
        let mut open: HashSet<String> = names
            .into_iter()
            .filter_map(|name| Some(name.strip_suffix(".json")?.to_owned()))
            .filter(|name| is_ours(name))
            .collect();
        if open.is_empty() && !has_parts {
            return Ok(Self::default());
        }
        let mut known = BTreeMap::new();
        // The part that was sealed last has the latest result.
        let parts = sealed::indexes(output).await?.into_iter().rev().collect();
        let mut indexes = std::pin::pin!(sealed::read_indexes(output, parts));
        while (!open.is_empty() || has_parts)
            && let Some((_, index)) = indexes.try_next().await?
        {
            let index = lines(&index).filter_map(|line| serde_json::from_slice(&line).ok());
            for IndexLine { id, version, object, .. } in index {
                let in_part =
                    || object.is_none() && is_ours(id.as_str()) && !known.contains_key(&id);
                if let Some(content) = version.content
                    && (open.remove(id.as_str()) || in_part())
                {
                    known.insert(id, content);
                }
            }
        }
        let unsealed: Vec<Location> =
            open.into_iter().map(|name| results.child(&format!("{name}.json"))).collect();
        let mut read = std::pin::pin!(stream::iter(unsealed).map(read_line).buffered(READ_AHEAD));
        while let Some(line) = read.try_next().await? {
            let Some((line, _)) = line else { continue };
            if let Some(content) = line.result.version.content {
                known.insert(line.result.id, content);
            }
        }
        Ok(Self::from_contents(known))
    }

    fn from_contents(contents: BTreeMap<DocumentId, Fingerprint>) -> Self {
        let mut ids: HashMap<Fingerprint, BTreeSet<DocumentId>> = HashMap::new();
        for (id, content) in &contents {
            ids.entry(*content).or_default().insert(id.clone());
        }
        Self { contents, ids }
    }

    /// Whether there are results of this file's records.
    pub(crate) fn has_file(&self, file: &DocumentId) -> bool {
        let prefix = format!("{file}{OF_FILE}");
        let mut from =
            self.contents.range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded));
        from.next().is_some_and(|(id, _)| id.as_str().starts_with(&prefix))
    }

    /// Gives the rows of one file that have no names their ids. Rows with names keep theirs.
    pub(crate) fn bind(&self, rows: &mut [(Document, IsNumbered)]) {
        if rows.iter().all(|(_, IsNumbered(is_numbered))| !is_numbered) {
            return;
        }
        let mut taken: HashSet<DocumentId> = rows
            .iter()
            .filter(|(_, IsNumbered(is_numbered))| !is_numbered)
            .map(|(row, _)| row.id.clone())
            .collect();
        let mut free: HashMap<Fingerprint, BTreeSet<&DocumentId>> = HashMap::new();
        for content in rows.iter().filter_map(|(row, _)| row.version.content) {
            free.entry(content).or_insert_with(|| {
                let ids = self.ids.get(&content).into_iter().flatten();
                ids.filter(|id| !taken.contains(*id)).collect()
            });
        }
        let mut bound: Vec<bool> = rows.iter().map(|(_, numbered)| !numbered.0).collect();
        // First the rows that kept their place, then those that have moved.
        for moved in [false, true] {
            for ((row, _), bound) in rows.iter_mut().zip(&mut bound).filter(|(_, bound)| !**bound) {
                let content = row.version.content;
                let Some(ids) = content.and_then(|content| free.get_mut(&content)) else {
                    continue;
                };
                let id = if moved { ids.pop_first() } else { ids.take(&row.id) };
                if let Some(id) = id {
                    row.id = id.clone();
                    taken.insert(row.id.clone());
                    *bound = true;
                }
            }
        }
        for ((row, _), _) in rows.iter_mut().zip(bound).filter(|(_, bound)| !bound) {
            if taken.contains(&row.id) {
                let own = row.id.clone();
                let mut others = (2..).map(|number| own.numbered(number));
                let free = others.find(|id| !taken.contains(id) && !self.contents.contains_key(id));
                row.id = free.unwrap_or(own);
            }
            taken.insert(row.id.clone());
        }
    }
}

/// Whether a row's id begins with that of one of these files.
fn is_of(row: &str, files: &HashSet<&str>) -> bool {
    let ends = (0..row.len()).filter(|at| row.as_bytes()[*at..].starts_with(OF_FILE.as_bytes()));
    ends.into_iter().any(|end| files.contains(&row[..end]))
}

/// Whether the record has no name, so that its id is the number of its row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IsNumbered(pub(crate) bool);

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;

    #[test]
    fn rows_belong_to_the_files_whose_ids_they_begin_with() {
        let files = HashSet::from(["a.csv", "x__b.csv", "c_"]);
        for row in ["a.csv__0000001", "x__b.csv__n", "c___1", "a.csv__x__b.csv__1", "a.csv__ö"] {
            assert!(is_of(row, &files), "{row}");
        }
        for row in ["a.csv", "b.csv__1", "a.csv_1", "c__1", "x__a.csv__1", ""] {
            assert!(!is_of(row, &files), "{row}");
        }
    }

    #[test]
    fn a_file_has_results_where_an_id_begins_with_its_own() {
        let id = DocumentId::from_relative_path;
        let content = Fingerprint::of_bytes(b"Ebb");
        let known = ["a.csv/1", "a.csv0/1", "x/b.csv/2"].map(|row| (id(row), content));
        let known = RowIds::from_contents(known.into());
        for (file, has) in
            [("a.csv", true), ("x/b.csv", true), ("x", true), ("a", false), ("z", false)]
        {
            assert_eq!(known.has_file(&id(file)), has, "{file}");
        }
        assert_eq!(known.ids[&content].len(), 3);
    }
}
