//! The state of one shard's documents: a sliding window over them.

mod provider_batch;
pub(crate) mod run;
mod slow_start;

use std::{collections::VecDeque, ops::Range, time::SystemTime};

use temporalio_workflow::{ActivityExecutionError, WorkflowContext};

use crate::{
    contract::{
        DocumentOutcome, DocumentTask, FailedDocument, FailureFacts, LongOutcome, PackOutcome,
        ShardInput,
    },
    failure,
    pace::{Ended, Pace, WindowState},
};

/// The workflow id of a batch's shard.
pub(crate) fn shard_id(batch: &str, shard: u32) -> String {
    format!("{batch}/shard-{shard:05}")
}

/// A shard's state in its workflow.
#[derive(Debug, Default)]
pub(crate) struct Shard {
    /// The input, updated with every document; a continued run begins with it.
    pub(crate) input: ShardInput,
    /// Whether no more documents are handed out in this run, because its history is long enough.
    pub(crate) draining: bool,
    /// Whether all calls have ended, and none will begin.
    pub(crate) over: bool,
    pub(crate) pace: Pace,
    /// Documents that have left the window and wait for their next model.
    pub(crate) escalated: VecDeque<DocumentTask>,
    /// Documents that have left the window and have not ended.
    pub(crate) outside: u64,
    /// The time of a document's last change; a condition has no clock of its own.
    pub(crate) latest: Option<SystemTime>,
}

impl Shard {
    /// Whether a call may start: a document waits for its next model, or the shard is not paused, has
    /// documents left, and the window has room.
    fn may_start(&self) -> bool {
        let has_room = self.in_window() < self.open_places().max(1).into();
        !self.escalated.is_empty() || (has_room && !self.input.paused && !self.exhausted())
    }

    /// Places of the window that may be in use. The shard before may have told of more than this one
    /// has.
    fn open_places(&self) -> u32 {
        let ShardInput { window, open, .. } = self.input;
        open.unwrap_or(window).min(window)
    }

    /// Adapts the pace after a call.
    fn adapt_pace(&mut self, ended: Ended) {
        self.input.call_seconds = 0;
        let state = WindowState {
            window: self.input.window,
            open: self.input.open,
            in_flight: self.would_be_in_flight(),
            call: self.in_one_call(),
            next: self.input.next,
        };
        self.input.open = self.pace.after(ended, state);
    }

    /// Documents that would be in flight after a call has ended if there were always a next one: at
    /// the shard's end or in a pause, fewer are in flight, but not because of the quota.
    fn would_be_in_flight(&self) -> u64 {
        if !self.input.paused && !self.exhausted() {
            return self.in_window();
        }
        let others = self.open_places().saturating_sub(self.in_one_call());
        self.in_window().max(others.into())
    }

    /// Documents in flight that hold a place of the window.
    pub(crate) fn in_window(&self) -> u64 {
        self.input.totals.in_flight.saturating_sub(self.outside)
    }

    /// Moves a document out of the window; it stays in flight.
    fn escalate(&mut self, task: DocumentTask, outcome: &DocumentOutcome) {
        self.input.totals.spend += outcome.spend;
        self.input.totals.cuts += outcome.cuts;
        let before = task.escalated.unwrap_or_default();
        self.escalated.push_back(DocumentTask { escalated: Some(before + outcome.spend), ..task });
        self.outside += 1;
    }

    fn exhausted(&self) -> bool {
        self.draining || self.has_handed_out()
    }

    /// Whether every document has been handed out.
    pub(crate) fn has_handed_out(&self) -> bool {
        self.input.next >= self.input.documents
    }

    /// The workflow id of the shard, also for a shard in its batch's workflow.
    fn id<W>(&self, ctx: &WorkflowContext<W>) -> String {
        if self.input.parent == ctx.workflow_id() {
            shard_id(&self.input.parent, self.input.shard)
        } else {
            ctx.workflow_id().to_owned()
        }
    }

    /// Documents in a call: never more than may be in flight.
    fn in_one_call(&self) -> u32 {
        self.input.pack.min(self.input.window).max(1)
    }

    /// Takes the next documents that go into one call.
    fn take(&mut self, now: Option<SystemTime>) -> Option<Range<u32>> {
        self.latest = now;
        if self.exhausted() {
            return None;
        }
        let most = self.input.next.saturating_add(self.in_one_call()).min(self.input.documents);
        let (first, input) = (self.input.next, &mut self.input);
        // Up to the next document that is done.
        let place = input.done.partition_point(|done| *done < first);
        input.next = input.done.get(place).map_or(most, |done| most.min(*done));
        input.totals.in_flight += u64::from(input.next - first);
        let taken = first..input.next;
        self.skip_done();
        Some(taken)
    }

    /// Skips documents that a provider's batch has answered.
    pub(crate) fn skip_done(&mut self) {
        while self.input.done.binary_search(&self.input.next).is_ok() {
            self.input.next += 1;
        }
    }

    /// Records a pack; returns its documents that must be sent alone (all if the pack failed),
    /// which stay in flight until then.
    fn record_pack(
        &mut self,
        taken: Range<u32>,
        ended: Result<PackOutcome, ActivityExecutionError>,
    ) -> Vec<u32> {
        let totals = &mut self.input.totals;
        match ended {
            Ok(packed) => {
                totals.in_flight =
                    totals.in_flight.saturating_sub(u64::from(packed.succeeded + packed.skipped));
                totals.succeeded += u64::from(packed.succeeded);
                totals.skipped += u64::from(packed.skipped);
                totals.updated += u64::from(packed.updated);
                totals.spend += packed.spent;
                totals.reused += packed.reused;
                self.mark_asked(packed.asked);
                packed.left
            }
            Err(error) if error.as_cancelled().is_some() => {
                totals.in_flight = totals.in_flight.saturating_sub(taken.len() as u64);
                Vec::new()
            }
            Err(error) => {
                let (_, spent) = failure::failed_document(taken.start, &error);
                totals.take(spent);
                if spent.spend.provider_calls > 0 {
                    self.mark_asked(taken.clone());
                }
                taken.collect()
            }
        }
    }

    /// Marks documents that were asked together and are now asked alone.
    fn mark_asked(&mut self, asked: impl IntoIterator<Item = u32>) {
        self.input.asked.extend(asked);
        self.input.asked.sort_unstable();
    }

    /// Counts all documents that have not ended as cancelled.
    fn cancel_the_rest(&mut self) {
        let totals = &mut self.input.totals;
        totals.cancelled = u64::from(self.input.documents).saturating_sub(totals.ended());
    }

    /// Records a document that was read in parts.
    fn record_parts(
        &mut self,
        index: u32,
        ended: Result<LongOutcome, String>,
        updated: bool,
        cancelled: bool,
    ) {
        let totals = &mut self.input.totals;
        totals.in_flight = totals.in_flight.saturating_sub(1);
        // No result: never started, or terminated; its cost is unknown.
        let ended = ended.unwrap_or_else(|message| {
            let error_type = "Unknown".to_owned();
            let facts = FailureFacts { error_type, message, ..FailureFacts::default() };
            let failed = FailedDocument { index, facts };
            let failed = (!cancelled).then_some(failed);
            LongOutcome { failed, cancelled, ..LongOutcome::default() }
        });
        totals.take(ended.taken);
        match ended.failed {
            Some(failed) => {
                totals.fail(&failed.facts.error_type);
                self.input.failures.push(failed);
            }
            None if ended.cancelled => {}
            None => {
                totals.succeeded += 1;
                totals.updated += u64::from(updated);
            }
        }
    }

    /// Records a document's end.
    fn record(&mut self, index: u32, ended: &Result<DocumentOutcome, ActivityExecutionError>) {
        let totals = &mut self.input.totals;
        totals.in_flight = totals.in_flight.saturating_sub(1);
        match ended {
            Ok(outcome) => totals.add(outcome),
            Err(error) if error.as_cancelled().is_some() => {}
            Err(error) => {
                let (failed, taken) = failure::failed_document(index, error);
                if failure::is_cancelled(error) {
                    // Not a failure: the next run of the batch takes the document up again.
                    totals.take(taken);
                    return;
                }
                totals.fail(&failed.facts.error_type);
                totals.take(taken);
                self.input.failures.push(failed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shard with few places is told that the quota admits more: `max_in_flight` holds.
    #[test]
    fn a_shard_hands_out_no_more_than_its_places() {
        let input =
            ShardInput { window: 9, open: Some(12), documents: 30, ..ShardInput::default() };
        let mut shard = Shard { input, ..Shard::default() };
        let taken = std::iter::from_fn(|| shard.may_start().then(|| shard.take(None)));
        assert_eq!(taken.count(), 9);
        shard.input.window += 11;
        let taken = std::iter::from_fn(|| shard.may_start().then(|| shard.take(None)));
        assert_eq!(taken.count(), 3, "with more places, as many as the quota admits");
    }
}
