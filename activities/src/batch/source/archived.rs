//! Archives with files of records: each row is a document, as outside an archive.

use tidegate_types::DocumentId;
use tidegate_workflows::contract::Records;

use crate::{
    batch::{
        archives,
        source::{
            page::{Archived, FilePosition, PageBudget, Within},
            records::{self, has_records},
        },
    },
    failure::{Failure, field_fault},
    output::{
        job::{Document, resolve},
        row_ids::RowIds,
    },
    storage::{Location, Storage},
};

/// A page read from an archive.
pub(super) struct ArchivePage {
    pub(super) documents: Vec<Document>,
    pub(super) after: FilePosition,
    /// The file of records in the archive that is being read.
    pub(super) within: Option<Within>,
}

impl Archived {
    /// The next documents, until the page is full.
    ///
    /// # Errors
    /// `InvalidInput` for faults that the batch's author must correct; `Transient` when a store fails.
    pub(super) async fn read(
        mut self,
        storage: &Storage,
        fields: &Records,
        output: &Location,
        room: &mut PageBudget,
    ) -> Result<ArchivePage, Failure> {
        let location = resolve(storage, "source", &self.uri)?;
        let stamp = match location.special() {
            Some(_) => None,
            None => location.stamp().await.map_err(|error| field_fault("source", error))?,
        };
        if let Some((before, now)) = self.stamp.as_ref().zip(stamp.as_ref())
            && !before.is_same(now)
        {
            return Err(records::changed(&location));
        }
        let file = Document::file(self.id.clone(), self.uri.clone());
        let members = Box::pin(archives::expand(storage, file, room)).await?;
        let of_records = members.iter().skip(self.before).filter(|member| has_records(member));
        let of_records: Vec<DocumentId> = of_records.map(|member| member.id.clone()).collect();
        let known = match of_records.is_empty() {
            true => RowIds::default(),
            false => RowIds::load(output, &of_records).await?,
        };
        let mut documents = Vec::new();
        for member in members.into_iter().skip(self.before) {
            if room.is_full() {
                self.stamp = stamp;
                return Ok(ArchivePage {
                    documents,
                    after: FilePosition::Within(self),
                    within: None,
                });
            }
            self.before += 1;
            if !has_records(&member) {
                room.take(&member);
                documents.push(member);
                continue;
            }
            let file = Within::beginning(&member);
            let (rows, next) = Box::pin(records::rows(storage, fields, &known, file, room)).await?;
            documents.extend(rows);
            if next.is_some() {
                self.stamp = stamp;
                return Ok(ArchivePage {
                    documents,
                    after: FilePosition::Within(self),
                    within: next,
                });
            }
        }
        Ok(ArchivePage { documents, after: *self.behind, within: None })
    }
}
