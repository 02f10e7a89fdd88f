//! Drives every vendor's batch API: submit, find, check, read the answers. A [`BatchVendor`]
//! supplies the vendor's specifics.

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use crate::{
    batch::{Answers, BatchApi, State},
    batch_endpoint::{BatchEndpoint, ReadLine},
    call::{BoxFuture, Request},
    error::{Charged, Error},
    exchange::Reply,
    json::text,
    verbatim::{Fields, Operation},
};

/// Assumed maximum difference between two clocks.
const SKEW: TimeDelta = TimeDelta::minutes(1);

/// Maximum number of pages of a list that are read, with a hundred batches each: no account makes
/// more while a worker restarts.
const MAX_PAGES: usize = 100;

/// The specifics of a vendor's batch API. A batch is represented by the vendor's JSON. Default
/// methods suit most vendors.
pub(crate) trait BatchVendor: fmt::Debug + Send + Sync {
    /// Whether a batch carries the name under which it was submitted.
    const TAKES_NOTES: bool;
    /// Query that sets pages of a hundred batches.
    const PAGE_SIZE: (&'static str, &'static str) = ("limit", "100");
    /// Query parameter for the value of [`Self::next_page`].
    const PAGE_AFTER: &'static str;
    /// Field of a page that holds its batches.
    const PAGE: &'static str = "data";
    /// Reads one line of the answers.
    const READ_LINE: ReadLine;

    /// The endpoint that lists, describes and cancels batches.
    fn batches(&self) -> &BatchEndpoint;

    /// The endpoint that serves answers.
    fn outputs(&self) -> &BatchEndpoint {
        self.batches()
    }

    /// A request's line; `body` is the single request's body. `operation` is set for a body in the
    /// vendor's own form.
    fn line(
        &self,
        custom_id: &str,
        model: &str,
        operation: Option<Operation>,
        body: &[u8],
    ) -> Vec<u8>;

    /// Stores the lines in a file and returns its id, if the vendor takes files.
    fn store(
        &self,
        _name: &str,
        _lines: &[Vec<u8>],
    ) -> impl Future<Output = Result<Option<String>, Error>> + Send {
        async { Ok(None) }
    }

    /// Deletes such a file.
    fn remove(&self, _file: &str) -> impl Future<Output = Result<(), Error>> + Send {
        async { Ok(()) }
    }

    /// Creates the batch from the lines or their file.
    fn create(
        &self,
        name: &str,
        operation: Option<Operation>,
        lines: &[Vec<u8>],
        file: Option<String>,
    ) -> impl Future<Output = Result<Reply, Error>> + Send;

    /// A batch's id.
    fn id(batch: &Value) -> Option<String> {
        text(batch, "/id").map(str::to_owned)
    }

    /// The time at which it was created.
    fn created(batch: &Value) -> Option<DateTime<Utc>>;

    /// Whether it may have been submitted under this name, with this number of requests, since that
    /// time.
    fn matches(batch: &Value, name: &str, requests: usize, since: DateTime<Utc>) -> bool;

    /// The start of the next page; `None` after the last page that can contain a batch created
    /// since that time. Most lists begin with the newest batch, and continue after an id.
    fn next_page(list: &Value, since: DateTime<Utc>) -> Option<String> {
        let last = list.get(Self::PAGE)?.as_array()?.last()?;
        let more = list.get("has_more").and_then(Value::as_bool).unwrap_or(false);
        let over = Self::created(last).is_some_and(|created| created < since);
        if more && !over { Self::id(last) } else { None }
    }

    /// A batch's state; `None` if the value is no batch.
    fn state(batch: &Value) -> Option<State>;

    /// The path segments after a batch's endpoint that cancel it.
    fn cancel_path(id: &str) -> Vec<String> {
        vec![id.to_owned(), "cancel".to_owned()]
    }

    /// The file of its requests, if it can be deleted.
    fn requests_file(_batch: &Value) -> Option<&str> {
        None
    }

    /// The files of its answers: paths below [`Self::outputs`].
    fn answer_files(batch: &Value) -> Vec<Vec<String>>;
}

/// A vendor's batch API.
#[derive(Debug)]
pub(crate) struct Batches<V>(pub(crate) V);

impl<V: BatchVendor> Batches<V> {
    /// The vendor's description of a batch.
    async fn describe(&self, id: &str) -> Result<Value, Error> {
        let batches = self.0.batches();
        batches.success(&batches.wire.get(&[id], &[]).await?)
    }
}

impl<V: BatchVendor> BatchApi for Batches<V> {
    fn line(&self, custom_id: &str, request: &Request<'_>) -> Result<Vec<u8>, Error> {
        Ok(self.0.line(custom_id, request.model, None, &self.0.batches().body(request)?))
    }

    fn line_as_it_is(
        &self,
        custom_id: &str,
        operation: Operation,
        model: &str,
        body: &Fields,
    ) -> Result<Vec<u8>, Error> {
        Ok(self.0.line(custom_id, model, Some(operation), &body.naming(model)?))
    }

    fn submit<'a>(
        &'a self,
        name: &'a str,
        operation: Option<Operation>,
        lines: &'a [Vec<u8>],
    ) -> BoxFuture<'a, Result<String, Error>> {
        Box::pin(async move {
            let file = self.0.store(name, lines).await?;
            let answered = self.0.create(name, operation, lines, file.clone()).await;
            if let Some(file) = file.filter(|_| certainly_refused(&answered)) {
                // Documents should not stay in the vendor's store needlessly; a failure to delete
                // them is ignored.
                let _ = self.0.remove(&file).await;
            }
            let (reply, batches) = (answered?, self.0.batches());
            V::id(&batches.success(&reply)?).ok_or_else(|| batches.unreadable(&reply))
        })
    }

    fn find<'a>(
        &'a self,
        name: &'a str,
        requests: usize,
        since: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<Vec<String>, Error>> {
        let (since, batches) = (since - SKEW, self.0.batches());
        Box::pin(async move {
            let (mut ids, mut last): (Vec<String>, Option<String>) = (Vec::new(), None);
            for _ in 0..MAX_PAGES {
                let mut query = vec![V::PAGE_SIZE];
                query.extend(last.as_deref().map(|last| (V::PAGE_AFTER, last)));
                let list = batches.success(&batches.wire.get(&[], &query).await?)?;
                let page = list.get(V::PAGE).and_then(Value::as_array).into_iter().flatten();
                let ours = page.filter(|batch| V::matches(batch, name, requests, since));
                ids.extend(ours.filter_map(V::id));
                match V::next_page(&list, since) {
                    // A server without pages sends the same page again.
                    Some(next) if last.as_ref() != Some(&next) => last = Some(next),
                    _ => break,
                }
            }
            Ok(ids)
        })
    }

    fn takes_notes(&self) -> bool {
        V::TAKES_NOTES
    }

    fn state<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<State, Error>> {
        Box::pin(async move {
            let batches = self.0.batches();
            let reply = batches.wire.get(&[id], &[]).await?;
            match V::state(&batches.success(&reply)?) {
                Some(State::Failed(why)) => Ok(State::Failed(batches.redactor().clean(&why))),
                Some(state) => Ok(state),
                None => Err(batches.unreadable(&reply)),
            }
        })
    }

    fn cancel<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let batches = self.0.batches();
            batches.success(&batches.wire.act(&V::cancel_path(id)).await?).map(drop)
        })
    }

    fn forget<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            match V::requests_file(&self.describe(id).await?) {
                Some(file) => self.0.remove(file).await,
                None => Ok(()),
            }
        })
    }

    fn answers<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Answers<'a>, Error>> {
        Box::pin(async move {
            let files = V::answer_files(&self.describe(id).await?);
            Ok(self.0.outputs().answers(files, V::READ_LINE))
        })
    }
}

/// Whether a batch certainly does not exist: the vendor refused it, or never got it. After a server
/// error it may exist.
fn certainly_refused(answered: &Result<Reply, Error>) -> bool {
    match answered {
        Ok(reply) => !reply.is_success() && reply.status < 500,
        Err(error) => error.charged == Charged::No,
    }
}
