//! Ids of records without names. An id is the number of its row, so an inserted or removed row
//! would change the ids of all later rows. Ids are therefore bound to the rows' content: a row
//! whose content has a result in the output keeps that result's id, even if the row has moved.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

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
pub(crate) struct RowIds(BTreeMap<DocumentId, Fingerprint>);

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
        let prefixes: Vec<String> = files.iter().map(|file| format!("{file}__")).collect();
        let is_ours = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
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
        for part in sealed::indexes(output).await?.into_iter().rev() {
            if open.is_empty() && !has_parts {
                break;
            }
            let index = layout::part_index(output, part).read_if_there().await?;
            let index = index.unwrap_or_default();
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
        Ok(Self(known))
    }

    /// Whether there are results of this file's records.
    pub(crate) fn has_file(&self, file: &DocumentId) -> bool {
        let prefix = format!("{file}__");
        self.0.keys().any(|id| id.as_str().starts_with(&prefix))
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
        for (id, content) in self.0.iter().filter(|(id, _)| !taken.contains(*id)) {
            free.entry(*content).or_default().insert(id);
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
                let free = others.find(|id| !taken.contains(id) && !self.0.contains_key(id));
                row.id = free.unwrap_or(own);
            }
            taken.insert(row.id.clone());
        }
    }
}

/// Whether the record has no name, so that its id is the number of its row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IsNumbered(pub(crate) bool);
