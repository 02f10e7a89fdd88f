//! Reading of the rows of a Parquet table.

use std::io::Cursor;

use super::Reader;
use crate::{
    confined::{Bounds, Ended, Parts},
    records::Broken,
    tables::{
        invalid,
        row_process::{DecodedRows, RowRequest, decode_rows},
    },
};

/// Memory of the process, in bytes.
const MEMORY: u64 = 1 << 30;

impl Reader {
    /// Decodes the requested rows. `parts` fetches ranges of the file.
    ///
    /// # Errors
    /// [`Broken`] if it is no Parquet file, has no such column, or cannot be read; for an error of
    /// `parts`; or if the process cannot be started.
    pub async fn read_rows(
        &self,
        request: &RowRequest,
        parts: &Parts<'_>,
    ) -> Result<DecodedRows, Broken> {
        let Some(helper) = self.helper() else {
            let whole = parts(0..request.size).await?;
            let open = move |from: u64| {
                let from = usize::try_from(from).unwrap_or(usize::MAX).min(whole.len());
                Ok(Cursor::new(whole.slice(from..)))
            };
            return decode_rows(request, open);
        };
        let bounds = Bounds { memory: MEMORY, time: self.limits().time };
        let task = Self::row_task_line(request.clone(), bounds)?;
        let (megabytes, seconds) = (MEMORY >> 20, bounds.time.as_secs());
        let too_much =
            || invalid(format!("it takes more than {megabytes} MiB or {seconds} s to decode"));
        match self.run_in_slot_with_parts(&helper, &task, bounds, parts).await? {
            Ended::Output(output) => {
                let rows: Result<DecodedRows, String> =
                    serde_json::from_slice(&output).map_err(|_| too_much())?;
                rows.map_err(invalid)
            }
            Ended::Crashed | Ended::OutOfMemory | Ended::TooSlow => Err(too_much()),
        }
    }
}
