//! One pass over everything that a batch has written: every planned document is counted, and every
//! result is copied.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use chrono::{DateTime, FixedOffset};
use futures::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use tidegate_types::DocumentId;
use tidegate_workflows::contract::{Finish, ResultsAs};

use crate::{
    failure::Failure,
    fingerprint::{Fingerprint, Ids},
    output::{
        agreement::Unmatched,
        finish::{
            checkpoint::{Checkpoint, Written},
            merged_results::{MergedResults, append, complete},
            totals::{DocumentCounts, ResultTotals},
        },
        job::{Stored, read_manifest},
        jsonl::lines,
        layout::{self, READ_AHEAD},
        part::{self, Part},
        result::{DocumentResult, ResultLine, read_line},
        seal::FailureLine,
        sealed::{self, Settled},
        truth::Truth,
        vendor_lines::{Form, OutputLine},
        version::Version,
    },
    storage::{Error, Location, assembly::Assembly},
};

/// With more documents than this, failures stay in their parts: a single file of them would be too
/// large to use.
const MAX_IN_ONE_FILE: u64 = 100_000;

/// Bytes of earlier batches' parts that are cached; at least one part is.
const PARTS_AT_HAND: usize = 32 << 20;

/// Shards that are read at once: the results of one may be tens of megabytes.
const SHARDS_AHEAD: usize = 2;

/// Bytes of results and failures between two checkpoints.
const CHECKPOINT: usize = 16 << 20;

/// The output that is being written, and its totals.
pub(super) struct Gathering<'a> {
    output: &'a Location,
    folder: &'a Location,
    finish: &'a Finish,
    takes: Takes,
    /// The vendor's form of the lines, for requests in such a form.
    form: Option<Form>,
    truth: Option<Truth>,
    without_truth: Unmatched,
    began: Option<DateTime<FixedOffset>>,
    first_part: u32,
    written_as: ResultsAs,
    /// Results with an object of their own that no planned document has claimed. `None` if the
    /// workers may not list objects, so that each must be read.
    present: Option<Ids>,
    /// Documents whose lines in earlier parts are out of date.
    anew: Ids,
    settled: SettledDocuments<'a>,
    earlier: EarlierParts<'a>,
    results: MergedResults,
    failures: Assembly,
    counted: DocumentCounts,
    answered: ResultTotals,
    /// Shards, and documents in no shard, that are written already.
    before: (u32, u64),
    /// Bytes of results and failures since the last checkpoint.
    since: usize,
}

impl<'a> Gathering<'a> {
    /// Continues from a checkpoint, or begins.
    pub(super) async fn begin(
        output: &'a Location,
        folder: &'a Location,
        finish: &'a Finish,
        stored: Option<&Stored>,
        truth: Option<Truth>,
    ) -> Result<Self, Failure> {
        let in_one_file = stored
            .and_then(|stored| stored.job.results_jsonl)
            .unwrap_or(finish.plan.documents <= MAX_IN_ONE_FILE);
        let first_part = stored.map_or(0, |stored| stored.first_part);
        let checkpoint = Checkpoint::read(folder).await?;
        let there = checkpoint.unwrap_or_default();
        let Checkpoint { shards, settled, counted, answered, results, failures } = there;
        let written_as = stored.map(|stored| stored.job.results).unwrap_or_default();
        let together = in_one_file.then_some(written_as);
        let staging = folder.child("failures.jsonl.part");
        let (failures, _) = failures.resume(output.child("failures.jsonl"), &staging);
        Ok(Self {
            output,
            folder,
            finish,
            takes: Takes::new(stored, finish.progress.done),
            form: stored.and_then(|stored| stored.job.lines.as_ref()).map(Form::from_lines),
            truth,
            without_truth: Unmatched::default(),
            began: finish.progress.started_at.as_deref().and_then(time),
            first_part,
            written_as,
            present: present(output, first_part).await?,
            anew: Ids::default(),
            settled: SettledDocuments::new(folder, finish),
            earlier: EarlierParts { output, at_hand: VecDeque::new() },
            results: MergedResults::begin(output, folder, together, results)?,
            failures,
            counted,
            answered,
            before: (shards, settled),
            since: 0,
        })
    }

    /// Processes everything.
    pub(super) async fn gather(mut self) -> Result<(DocumentCounts, ResultTotals), Failure> {
        let mut asked = 0;
        let of = ShardReader {
            output: self.output,
            folder: self.folder,
            first_part: self.first_part,
            written_as: self.written_as,
            written: self.before.0,
        };
        let shards = stream::iter(0..self.finish.plan.shards()).map(move |shard| of.read(shard));
        let mut shards = std::pin::pin!(shards.buffered(SHARDS_AHEAD));
        while let Some(read) = shards.try_next().await? {
            let shard = read.shard;
            if shard < self.before.0 {
                asked = self.pass_over(read, asked).await?;
            } else {
                asked = self.shard(read, asked).await?;
                self.note(shard + 1).await?;
            }
        }
        while let Some(settled) = self.settled.next(u64::MAX).await? {
            if self.settled.taken <= self.before.1 {
                self.claim(&settled.id);
            } else {
                self.settle(settled).await?;
                self.note(self.finish.plan.shards()).await?;
            }
        }
        self.write_others().await?;
        self.results.complete(self.output, self.folder).await?;
        complete(self.folder, self.failures).await?;
        if self.first_part > 0 {
            sealed::supersede(self.output, self.first_part, |id| self.anew.contains(id)).await?;
        }
        let agreement = &mut self.answered.compared.agreement;
        agreement.without_truth = self.without_truth;
        // Of a plan that was broken off, the documents are not known.
        if let Some(truth) = self.truth.filter(|_| !self.finish.plan.more) {
            agreement.without_document = truth.read_unmet(self.folder).await?;
        }
        Ok((self.counted, self.answered))
    }

    /// Skips a shard that is written already, but claims its documents again.
    async fn pass_over(&mut self, read: ReadShard, mut asked: u64) -> Result<u64, Failure> {
        for planned in read.planned {
            while let Some(settled) = self.settled.next(asked).await? {
                self.claim(&settled.id);
            }
            self.claim(&planned.id);
            asked += 1;
        }
        if self.first_part > 0 {
            read.sealed.keys().for_each(|id| self.anew.insert(id.as_str()));
        }
        Ok(asked)
    }

    /// Claims a planned document; called once for each. Returns whether it may have a result with
    /// an object of its own.
    fn claim(&mut self, id: &DocumentId) -> bool {
        if self.truth.as_mut().is_some_and(|truth| !truth.mark_seen(id)) {
            self.without_truth.add(id.as_str());
        }
        self.present.as_mut().is_none_or(|present| present.remove(id.as_str()))
    }

    async fn shard(&mut self, read: ReadShard, mut asked: u64) -> Result<u64, Failure> {
        let output = self.output;
        let ReadShard { planned, mut sealed, failures, .. } = read;
        if self.first_part > 0 {
            sealed.keys().for_each(|id| self.anew.insert(id.as_str()));
        }
        let mut failed: HashMap<DocumentId, Bytes> = lines(&failures)
            .filter_map(|line| Some((serde_json::from_slice::<FailureLine>(&line).ok()?.id, line)))
            .collect();
        let found: Vec<(Planned, ResultSource)> = planned
            .into_iter()
            .map(|planned| {
                let is_present = self.claim(&planned.id);
                let found = match sealed.remove(&planned.id) {
                    Some(line) => ResultSource::Sealed(Box::new(line)),
                    None if is_present => {
                        ResultSource::Alone(DocumentResult::location(output, &planned.id))
                    }
                    None => ResultSource::Nowhere,
                };
                (planned, found)
            })
            .collect();
        let found = stream::iter(found)
            .map(|(planned, found)| async { Ok::<_, Failure>((planned, found.read().await?)) })
            .buffered(READ_AHEAD);
        let mut found = std::pin::pin!(found);
        while let Some((planned, line)) = found.try_next().await? {
            while let Some(settled) = self.settled.next(asked).await? {
                self.settle(settled).await?;
            }
            asked += 1;
            let failed = failed.remove(&planned.id);
            self.document(planned, line, failed).await?;
        }
        Ok(asked)
    }

    /// Writes a checkpoint now and then, after this many shards and the documents before their end.
    async fn note(&mut self, shards: u32) -> Result<(), Failure> {
        if self.since < CHECKPOINT {
            return Ok(());
        }
        self.since = 0;
        let checkpoint = Checkpoint {
            shards,
            settled: self.settled.taken,
            counted: self.counted.clone(),
            answered: self.answered.clone(),
            results: self.results.save_state()?,
            failures: Written::new(&self.failures, []),
        };
        checkpoint.save(self.folder).await
    }

    /// Handles a document that was asked, or was to be asked.
    async fn document(
        &mut self,
        planned: Planned,
        line: Option<ResultLine>,
        failed: Option<Bytes>,
    ) -> Result<(), Failure> {
        let takes = self.takes;
        let line = line.filter(|line| takes.question(&line.result));
        if let Some(line) = &line {
            self.result(line).await?;
        }
        if line.is_none()
            && self
                .truth
                .as_ref()
                .is_some_and(|truth| truth.expected(planned.id.as_str()).is_some())
        {
            self.answered.compared.agreement.unanswered += 1;
        }
        let answered_at = line.as_ref().and_then(|line| time(&line.result.completed_at));
        if line.is_some() && answered_at >= self.began {
            self.counted.new += 1;
            if let (Some(began), Some(at)) = (self.began, answered_at) {
                self.answered.course.add(began, at);
            }
        } else if let Some(line) = failed {
            self.counted.failed += 1;
            let failed = self.answered.given_up.add(&line).unwrap_or_default();
            self.answered.checks.fail(&failed);
            self.failure(&line).await?;
        } else if line.is_some_and(|line| takes.version(&planned.version, &line.result)) {
            self.counted.old += 1;
        } else {
            self.counted.neither.add(planned.id.as_str());
            if let Some(form) = self.form {
                self.write_line(form.cancelled(&planned.id, &planned.uri)).await?;
            }
        }
        Ok(())
    }

    /// Handles a document whose answer existed when the batch was planned.
    async fn settle(&mut self, settled: Settled) -> Result<(), Failure> {
        self.claim(&settled.id);
        let line = match self.earlier.line(&settled).await? {
            Some(line) => Some(line),
            None => {
                let own = DocumentResult::location(self.output, &settled.id);
                read_line(own).await?.map(|(line, _)| Arc::new(line))
            }
        };
        match line {
            Some(line) => {
                self.counted.old += 1;
                self.result(&line).await
            }
            None => {
                self.counted.neither.add(settled.id.as_str());
                Ok(())
            }
        }
    }

    /// Counts and copies a result that answers this batch's question.
    async fn result(&mut self, line: &ResultLine) -> Result<(), Failure> {
        self.answered.add(&line.result);
        self.compare(&line.result);
        match self.form {
            Some(form) => self.write(&form.answer(&line.result).into()).await,
            None => self.write(&line.json).await,
        }
    }

    async fn write(&mut self, json: &Bytes) -> Result<(), Failure> {
        self.since += json.len();
        self.results.append(self.folder, json).await
    }

    async fn failure(&mut self, line: &Bytes) -> Result<(), Failure> {
        self.since += line.len();
        match self.form {
            Some(form) => self.write_line(form.failure(line)).await,
            None => append(self.folder, &mut self.failures, line).await,
        }
    }

    async fn write_line(&mut self, told: OutputLine) -> Result<(), Failure> {
        match told {
            OutputLine::Answer(line) => self.write(&line.into()).await,
            OutputLine::Error(line) => append(self.folder, &mut self.failures, &line).await,
        }
    }

    /// Compares an answer with the expected one.
    fn compare(&mut self, result: &DocumentResult) {
        let Some(truth) = &mut self.truth else { return };
        // The document may no longer be planned.
        truth.mark_seen(&result.id);
        if let Some(expected) = truth.expected(result.id.as_str()) {
            let taken = (result.saved_usd.or(result.cost_usd), result.seconds);
            let compared = &mut self.answered.compared;
            compared.add(result.id.as_str(), expected, &result.answer, taken, |_, _| Some(false));
        }
    }

    /// Writes results to this batch's question that no planned document has claimed.
    async fn write_others(&mut self) -> Result<(), Failure> {
        let takes = self.takes;
        let Some(mut present) = self.present.take().filter(|present| !present.is_empty()) else {
            return Ok(());
        };
        let results = self.output.child("results");
        let mut others = Vec::new();
        let listed = results.list(|location| {
            others.extend(own_id(&location, &results).filter(|id| present.has(id)));
        });
        listed.await?;
        others.sort_unstable();
        let others = stream::iter(others)
            .map(|name| {
                let location = results.child(&format!("{name}.json"));
                async move {
                    let line = read_line(location).await?.map(|(line, _)| line);
                    Ok::<_, Failure>(line.filter(|line| line.result.id.as_str() == name))
                }
            })
            .buffered(READ_AHEAD);
        let mut others = std::pin::pin!(others);
        while let Some(line) = others.try_next().await? {
            if let Some(line) = line
                && present.remove(line.result.id.as_str())
                && takes.question(&line.result)
            {
                self.result(&line).await?;
            }
        }
        let mut by_part: BTreeMap<u32, Vec<DocumentId>> = BTreeMap::new();
        sealed::alone_before(self.output, self.first_part, |part, id| {
            if present.has(id.as_str()) {
                by_part.entry(part).or_default().push(id);
            }
        })
        .await?;
        for (part, ids) in by_part {
            let mut results = part::results(self.output, part).await?;
            for id in ids {
                if let Some(line) = results.remove(&id)
                    && present.remove(id.as_str())
                    && takes.question(&line.result)
                {
                    self.result(&line).await?;
                }
            }
        }
        Ok(())
    }
}

/// Everything that was written about a shard.
struct ReadShard {
    shard: u32,
    planned: Vec<Planned>,
    /// The results in its part.
    sealed: HashMap<DocumentId, ResultLine>,
    /// The lines of its failures.
    failures: Bytes,
}

/// Reads shards.
#[derive(Clone, Copy)]
struct ShardReader<'a> {
    output: &'a Location,
    folder: &'a Location,
    first_part: u32,
    written_as: ResultsAs,
    /// Shards that are written already: only the ids of their documents are needed.
    written: u32,
}

impl ShardReader<'_> {
    async fn read(self, shard: u32) -> Result<ReadShard, Failure> {
        let is_written = shard < self.written;
        let sealed = async {
            if is_written && self.first_part == 0 {
                return Ok(HashMap::new());
            }
            let number = self.first_part + shard;
            let found = Part::find(self.output, number, self.written_as).await?;
            Ok::<_, Failure>(found.map(|(_, lines)| part::by_document(lines)).unwrap_or_default())
        };
        let failures = async {
            if is_written {
                return Ok(Bytes::new());
            }
            let whole = layout::failures_part(self.folder, shard).read_if_there().await?;
            Ok::<_, Failure>(whole.unwrap_or_default())
        };
        let planned = read_manifest::<Planned>(self.folder, shard);
        let ((planned, _), sealed, failures) = tokio::try_join!(planned, sealed, failures)?;
        Ok(ReadShard { shard, planned, sealed, failures })
    }
}

/// Documents of the plan that were not asked, in its order.
struct SettledDocuments<'a> {
    folder: &'a Location,
    pages: std::ops::Range<u32>,
    /// The rest of the page that was read last.
    page: VecDeque<Settled>,
    /// Documents that were returned.
    taken: u64,
}

impl<'a> SettledDocuments<'a> {
    fn new(folder: &'a Location, finish: &Finish) -> Self {
        let pages = if finish.plan.settled > 0 { 0..finish.plan.pages } else { 0..0 };
        Self { folder, pages, page: VecDeque::new(), taken: 0 }
    }

    /// The next settled document, if it comes before `asked` documents that were asked, or directly
    /// after the one before.
    async fn next(&mut self, asked: u64) -> Result<Option<Settled>, Failure> {
        while self.page.is_empty() {
            let Some(page) = self.pages.next() else { return Ok(None) };
            let object = layout::settled(self.folder, page);
            let whole = object.read_if_there().await?.unwrap_or_default();
            let read = lines(&whole).map(|line| serde_json::from_slice(&line));
            self.page = read
                .collect::<Result<_, _>>()
                .map_err(|error| Failure::invalid_input(format!("{object} is damaged: {error}")))?;
        }
        let is_due = self.page.front().is_some_and(|settled| settled.at <= asked);
        self.taken += u64::from(is_due);
        Ok(if is_due { self.page.pop_front() } else { None })
    }
}

/// Results that earlier batches have sealed.
struct EarlierParts<'a> {
    output: &'a Location,
    /// Part, bytes and results; the latest last.
    at_hand: VecDeque<(u32, usize, HashMap<DocumentId, Arc<ResultLine>>)>,
}

impl EarlierParts<'_> {
    async fn line(&mut self, settled: &Settled) -> Result<Option<Arc<ResultLine>>, Failure> {
        let known = self.at_hand.iter().find(|(part, ..)| *part == settled.part);
        if let Some((.., results)) = known {
            return Ok(results.get(&settled.id).cloned());
        }
        let results = part::results(self.output, settled.part).await?;
        let bytes = results.values().map(|line| 2 * line.json.len()).sum();
        let results: HashMap<_, _> =
            results.into_iter().map(|(id, line)| (id, Arc::new(line))).collect();
        let line = results.get(&settled.id).cloned();
        while self.at_hand.iter().map(|(_, bytes, _)| bytes).sum::<usize>() + bytes > PARTS_AT_HAND
        {
            if self.at_hand.pop_front().is_none() {
                break;
            }
        }
        self.at_hand.push_back((settled.part, bytes, results));
        Ok(line)
    }
}

/// Selects the results that answer the question of this batch.
#[derive(Debug, Clone, Copy)]
struct Takes {
    /// Fingerprint of the question; absent where `job.json` is gone, so that every result counts.
    asks: Option<Fingerprint>,
    /// Whether the batch has processed all documents, so that every content that had to be read was
    /// read.
    all_read: bool,
}

impl Takes {
    fn new(stored: Option<&Stored>, all_read: bool) -> Self {
        Self { asks: stored.map(Stored::question_fingerprint), all_read }
    }

    fn question(self, result: &DocumentResult) -> bool {
        self.asks.is_none_or(|asks| result.question == Some(asks))
    }

    fn version(self, planned: &Version, result: &DocumentResult) -> bool {
        let is_listed = planned.stamp.is_some() && result.version.stamp.is_some();
        self.asks.is_none()
            || planned.is_same(&result.version).unwrap_or(self.all_read || !is_listed)
    }
}

/// The place of a planned document's result.
enum ResultSource {
    /// In its shard's part.
    Sealed(Box<ResultLine>),
    /// Only in an object of its own.
    Alone(Location),
    Nowhere,
}

impl ResultSource {
    async fn read(self) -> Result<Option<ResultLine>, Failure> {
        match self {
            Self::Sealed(line) => Ok(Some(*line)),
            Self::Alone(location) => Ok(read_line(location).await?.map(|(line, _)| line)),
            Self::Nowhere => Ok(None),
        }
    }
}

/// The existing results, in objects of their own or sealed by earlier batches; `None` where the workers
/// may not list them.
async fn present(output: &Location, first_part: u32) -> Result<Option<Ids>, Failure> {
    let results = output.child("results");
    let mut present = Ids::default();
    let listed = results.list(|location| {
        if let Some(id) = own_id(&location, &results) {
            present.insert(&id);
        }
    });
    match listed.await {
        Ok(()) => {
            if first_part > 0 {
                sealed::alone_before(output, first_part, |_, id| present.insert(id.as_str()))
                    .await?;
            }
            Ok(Some(present))
        }
        Err(error @ Error::Failed(_)) => Err(error.into()),
        Err(error) => {
            tracing::warn!(%error, "results that are not in the plan are left out of results.jsonl");
            Ok(None)
        }
    }
}

fn own_id(location: &Location, results: &Location) -> Option<String> {
    let name = location.relative_to(results);
    Some(name.strip_suffix(".json").filter(|id| !id.contains('/'))?.to_owned())
}

/// A document of a shard, and its version as known when it was planned.
#[derive(Deserialize)]
struct Planned {
    id: DocumentId,
    uri: String,
    #[serde(flatten)]
    version: Version,
}

pub(super) fn time(text: &str) -> Option<DateTime<FixedOffset>> {
    DateTime::parse_from_rfc3339(text).ok()
}
