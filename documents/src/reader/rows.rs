//! Reading of the rows of a Parquet table.

use std::io::Cursor;

use super::Reader;
use crate::{
    confined::{Bounds, Ended, Parts},
    records::Broken,
    tables::{
        apart::{Rows, Wanted, decoded},
        invalid,
    },
};

/// Memory of the process, in bytes.
const MEMORY: u64 = 1 << 30;

impl Reader {
    /// Decodes the wanted rows. `parts` fetches ranges of the file.
    ///
    /// # Errors
    /// [`Broken`] as in [`rows`], for an error of `parts`, or if the process cannot be started.
    pub async fn rows(&self, wanted: &Wanted, parts: &Parts<'_>) -> Result<Rows, Broken> {
        let Some(helper) = self.helper() else {
            let whole = parts(0..wanted.size).await?;
            let open = move |from: u64| {
                let from = usize::try_from(from).unwrap_or(usize::MAX).min(whole.len());
                Ok(Cursor::new(whole.slice(from..)))
            };
            return decoded(wanted, open);
        };
        let bounds = Bounds { memory: MEMORY, time: self.limits().time };
        let task = Self::task_of_rows(wanted.clone(), bounds)?;
        let (megabytes, seconds) = (MEMORY >> 20, bounds.time.as_secs());
        let too_much =
            || invalid(format!("it takes more than {megabytes} MiB or {seconds} s to decode"));
        match self.placed_on_parts(&helper, &task, bounds, parts).await? {
            Ended::Said(said) => {
                let said: Result<Rows, String> =
                    serde_json::from_slice(&said).map_err(|_| too_much())?;
                said.map_err(invalid)
            }
            Ended::Crashed | Ended::TooSlow => Err(too_much()),
        }
    }
}
