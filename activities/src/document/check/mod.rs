//! Answers with checks: the model is asked and its answer is checked. After a failed check it is
//! asked once more and told the fault. After a second failure the next model of the route is asked,
//! if the batch escalates.
//!
//! ```text
//! ask ──► expressions ──► judges, one an attempt ──► result
//!  ▲          │ fails           │ fails
//!  └── once ──┴────────◄────────┤
//!                               └─ again ─► the next model, in an activity of its own; or CheckFailed
//! ```
//!
//! An attempt makes one call. Its outcome is stored ([`Pending`]) before the attempt ends, so that
//! a crash does not pay for it twice. These calls use nothing of the batch's retry budget; their
//! number is bounded by [`MAX_ASKS`] for each model and the number of judges.

pub(crate) mod judge;
mod pending;

use tidegate_calls::route::Route;
use tidegate_documents::tokens;
use tidegate_types::{FailureType, Spend};
use tidegate_workflows::contract::{AskedAnswer, Taken};

pub(crate) use crate::document::check::judge::VERDICT_TOKENS;
use crate::{
    attempt::Attempt,
    document::{
        ask::{
            evidence::QuoteSource,
            inquiry::{AnswerSubject, answer_content},
            prompt::Content,
            prompt_builder::DocumentFacts,
            sandbox,
        },
        check::{
            judge::Verdict,
            pending::{Bound, Pending},
        },
    },
    failure::Failure,
    output::{
        job::{Document, Shard, payers},
        result::{AskedModel, Checked, DocumentResult, Evidence, MAX_ASKS},
        version::Version,
    },
    services::Services,
    storage::Location,
};

/// The outcome of an attempt.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// An answer that passed or could not be judged, and the cost of other activities for it.
    Passed(Box<DocumentResult>, Spend),
    /// The next model of the route is to be asked.
    Escalates,
}

/// A document and its content, whose answer is checked.
#[derive(Debug)]
pub(crate) struct Checking<'a> {
    pub(crate) services: &'a Services,
    pub(crate) attempt: &'a Attempt,
    pub(crate) shard: &'a Shard,
    pub(crate) document: &'a Document,
    pub(crate) content: &'a Content,
    /// Where the content's pages begin, in bytes.
    pub(crate) pages: &'a [usize],
    pub(crate) version: Version,
    /// Where an answer that is refused is stored.
    pub(crate) refused: &'a Location,
}

impl Checking<'_> {
    /// Takes the next step with a document, which is one call.
    ///
    /// # Errors
    /// A [`Failure`] with the time of a retry, if any; a final `CheckFailed` where no answer has
    /// passed.
    pub(crate) async fn answer(self) -> Result<Outcome, Failure> {
        let Self { services, attempt, shard, document, version, .. } = &self;
        let place = Pending::location(&shard.output, &document.id);
        services.pending_writes.recover(attempt, &place).await?;
        let mut pending = Pending::read(&place, shard.asks, version).await?.unwrap_or_default();
        pending.resume_with(attempt);
        let levels = levels(shard);
        if pending.needs_expressions(&shard.job) {
            self.evaluate_expressions(&mut pending).await?;
            return self.decide(pending, &levels, &place).await;
        }
        let _rest = self.hold(&pending, &levels).await?;
        let judge = pending.open_judges(&shard.job).next();
        match judge {
            Some((name, judge)) => {
                let Some(result) = &mut pending.result else {
                    return Err(Failure::transient("there is no answer to be judged"));
                };
                match judge::ask(services, attempt, shard, self.content, (judge, &result.answer))
                    .await?
                {
                    Verdict::Unchecked => result.unchecked.push(name.to_owned()),
                    verdict => result.checks.push(verdict.into_check(name)),
                }
            }
            None => match self.ask_model(&mut pending, &levels).await {
                Err(failure) if failure.is_retried() || pending.result.is_none() => {
                    return Err(failure);
                }
                Err(failure) => {
                    let failure = after_failed_checks(&pending, failure);
                    return self.leave_model(pending, &levels, failure, &place).await;
                }
                Ok(()) => {
                    if let Err(failure) = self.evaluate_expressions(&mut pending).await {
                        self.store(pending, &place).await?;
                        return Err(failure);
                    }
                }
            },
        }
        self.decide(pending, &levels, &place).await
    }

    /// Evaluates the expressions for the answer.
    async fn evaluate_expressions(&self, pending: &mut Pending) -> Result<(), Failure> {
        let Self { services, shard, document, content, .. } = self;
        let Some(result) = &mut pending.result else { return Ok(()) };
        let (about, reader) =
            (DocumentFacts::new(document, content.text()), services.reader_for(&shard.job.lane));
        result.checks =
            sandbox::evaluate_checks(&reader, &shard.job, &about, &result.answer).await?;
        let of_quotes = shard.job.checks.iter().filter(|check| check.is_of_quotes());
        result.checks.extend(of_quotes.map(|check| {
            check_quotes(&check.name, result.evidence.as_deref().unwrap_or_default())
        }));
        Ok(())
    }

    /// Asks for an answer.
    async fn ask_model(&self, pending: &mut Pending, levels: &[Route]) -> Result<(), Failure> {
        let Self { services, attempt, shard, document, content, pages, version, refused } = self;
        let failed = pending.failed_checks();
        let correction = (pending.asks > 0).then(|| correction(&failed));
        let level = usize::try_from(pending.level).unwrap_or_default().min(levels.len() - 1);
        let route = &levels[level];
        let before = attempt.spent();
        let (document, version) = ((*document).clone(), version.clone());
        let correction = correction.as_deref();
        let sought = QuoteSource::Whole(content, pages);
        let about = AnswerSubject::of_shard(shard, (document, version), refused, sought);
        let about = AnswerSubject { correction, ..about };
        let asked = (*content, None);
        let result = answer_content(services, attempt, shard, route, asked, about).await?;
        let tokens = result.spend().beyond(before).tokens();
        let unpriced_calls = u64::from(result.cost_usd.is_none());
        attempt.discard(Taken { spend: Spend { unpriced_calls, ..tokens }, ..Taken::default() });
        let why = match failed.is_empty() {
            true => "the first of its route".to_owned(),
            false => reasons(&failed),
        };
        let (model, failed) = (result.model.clone(), names(&failed));
        let answer = AskedAnswer { model, level: pending.level, failed };
        pending.asked.push(AskedModel { answer, why });
        attempt.set_asked_answers(pending.answers());
        pending.asks += 1;
        pending.result = Some(result);
        Ok(())
    }

    /// Decides the next step from the results of an answer's checks.
    async fn decide(
        &self,
        pending: Pending,
        levels: &[Route],
        place: &Location,
    ) -> Result<Outcome, Failure> {
        let names = quoted(&names(&pending.failed_checks()));
        if names.is_empty() {
            if pending.open_judges(&self.shard.job).next().is_some() {
                self.store(pending, place).await?;
                return Err(Failure::judged_next());
            }
            let before = pending.before;
            let result = pending.into_result(self.attempt, self.shard.job.escalate);
            let result = result.ok_or_else(|| Failure::transient("there is no answer"))?;
            return Ok(Outcome::Passed(Box::new(result), before));
        }
        if pending.asks < MAX_ASKS {
            self.store(pending, place).await?;
            return Err(Failure::checked_again(&names));
        }
        self.leave_model(pending, levels, Failure::check_failed(&names), place).await
    }

    /// Escalates an answer that failed its checks to the next model, or gives it up.
    async fn leave_model(
        &self,
        mut pending: Pending,
        levels: &[Route],
        failure: Failure,
        place: &Location,
    ) -> Result<Outcome, Failure> {
        if pending.move_to_next_model(levels.len()) {
            self.store(pending, place).await?;
            return Ok(Outcome::Escalates);
        }
        Err(self.give_up(pending, failure, place).await)
    }

    async fn store(&self, mut pending: Pending, place: &Location) -> Result<(), Failure> {
        pending.step += 1;
        let bought = pending.bought(self.attempt, place)?;
        self.services.pending_writes.write(self.attempt, &bought).await.map(drop)
    }

    /// Gives a document up, and stores its last answer for people to read.
    async fn give_up(&self, pending: Pending, failure: Failure, place: &Location) -> Failure {
        let Self { attempt, refused, .. } = self;
        attempt.set_failed_checks(names(&pending.failed_checks()));
        attempt.call.record_failure(failure.kind);
        if failure.kind == FailureType::CheckFailed
            && let Some(result) = pending.into_result(attempt, self.shard.job.escalate)
            && result.write_refused(refused).await
        {
            attempt.set_kept_answer(refused.to_string());
        }
        remove_state(place).await;
        failure
    }

    /// Reserves money for all calls that may follow this one; the call itself reserves its own. A
    /// document is started only if all of them can be paid.
    async fn hold(
        &self,
        pending: &Pending,
        levels: &[Route],
    ) -> Result<Vec<tidegate_quota::budget::BudgetHold>, Failure> {
        let Self { services, attempt, shard, content, .. } = self;
        let job = &shard.job;
        let input = content.tokens() + tokens::estimate(&job.instructions);
        let bound = Bound { services, job, levels };
        let usd = bound.rest_usd(input, pending);
        let payers = payers(job, &attempt.call.batch);
        let id = format!("{}+checks", attempt.call.reservation);
        match services.budgets.hold_beside(&payers, &id, usd).await {
            Err(failure) if pending.step == 0 => {
                if failure.is_retried() {
                    attempt.call.defer(None);
                }
                Err(failure)
            }
            held => {
                let held = held.unwrap_or_default();
                attempt.call.hold_beside(if held.is_empty() { 0.0 } else { usd });
                Ok(held)
            }
        }
    }
}

/// The failure of a document whose model cannot be asked again: the failed checks, rather than an
/// exhausted budget.
fn after_failed_checks(pending: &Pending, failure: Failure) -> Failure {
    match failure.kind {
        FailureType::BudgetExceeded | FailureType::QuotaExhausted => {
            let names = quoted(&names(&pending.failed_checks()));
            Failure::check_failed(&format!("{names}, and none is asked for: {failure}"))
        }
        _ => failure,
    }
}

/// The models of a shard's route, one after the other if the batch escalates.
fn levels(shard: &Shard) -> Vec<Route> {
    if shard.job.escalate { shard.route.levels() } else { vec![shard.route.clone()] }
}

/// Removes the stored state of a document's checks. Failing to remove it does no harm.
pub(crate) async fn remove_state(place: &Location) {
    place.remove_or_log("an answer that was checked stays behind").await;
}

/// Location of the document's answer while it is checked.
pub(crate) fn location(shard: &Shard, document: &Document) -> Location {
    Pending::location(&shard.output, &document.id)
}

/// Whether each quote is in the text that was sent.
fn check_quotes(name: &str, evidence: &[Evidence]) -> Checked {
    let missing = evidence.iter().filter(|it| it.found == Some(false));
    let missing: Vec<&str> = missing.map(|it| it.field.as_str()).collect();
    let why = || format!("the words given for {} are not in the document", missing.join(", "));
    Checked {
        name: name.to_owned(),
        passed: missing.is_empty(),
        why: (!missing.is_empty()).then(why),
    }
}

fn names(failed: &[Checked]) -> Vec<String> {
    failed.iter().map(|check| check.name.clone()).collect()
}

/// The names in quotes, for a message, which contains nothing of the answer.
fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    names.join(", ")
}

fn reasons(failed: &[Checked]) -> String {
    let reason = |check: &Checked| match &check.why {
        Some(why) => format!("{}: {why}", check.name),
        None => check.name.clone(),
    };
    failed.iter().map(reason).collect::<Vec<_>>().join("; ")
}

/// The correction that is sent to the model.
fn correction(failed: &[Checked]) -> String {
    format!(
        "Your last answer was refused, because it does not pass what is checked: {}. Look at the document again, and answer again.",
        reasons(failed)
    )
}
