//! Recognises outputs of earlier batches in a source: a repeated `tidegate run . --output out/`
//! with another output must not take the earlier answers for documents.

use std::collections::HashMap;

use crate::{
    failure::Failure,
    output::{layout, recorded_question},
    storage::Location,
};

/// Folders of the source, and whether each is the output of a batch.
#[derive(Debug, Default)]
pub(super) struct EarlierOutputs(HashMap<String, bool>);

impl EarlierOutputs {
    /// Whether a batch has written this object, by its path in the source. If the source itself is
    /// an output, only its internal objects are left out, because its answers are wanted.
    pub(super) async fn wrote(&mut self, base: &Location, path: &str) -> Result<bool, Failure> {
        let parts: Vec<&str> = path.split('/').collect();
        for (at, part) in parts.iter().enumerate() {
            if !is_ours(part) || (at == 0 && *part != layout::FOLDER) {
                continue;
            }
            let Some(folders) = parts.get(..at) else { continue };
            let folder = folders.join("/");
            let is_output = match self.0.get(&folder) {
                Some(known) => *known,
                None => {
                    let place = folders.iter().fold(base.clone(), |place, part| place.child(part));
                    let marked = recorded_question::location(&place).size().await?.is_some();
                    self.0.insert(folder, marked);
                    marked
                }
            };
            if is_output {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether an output has an object or a folder of this name. After a `#` is the number of an upload
/// that was broken off.
pub(super) fn is_ours(name: &str) -> bool {
    let name = name.split('#').next().unwrap_or_default();
    ["results", layout::FOLDER].contains(&name) || layout::AT_TOP.contains(&name)
}
