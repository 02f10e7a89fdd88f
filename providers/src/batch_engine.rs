//! One way through every vendor's batch API: hand in, find again, look after, read the answers. What
//! a vendor has of its own is a [`BatchVendor`].

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

/// How far two clocks may be apart.
const SKEW: TimeDelta = TimeDelta::minutes(1);

/// Pages of a list that are looked at, a hundred batches each: no account makes so many in the time
/// that it takes to start a worker again.
const MAX_PAGES: usize = 100;

/// What a vendor's batch API has of its own. A batch is the JSON that the vendor describes it by. What
/// is written here is what most vendors do.
pub(crate) trait BatchVendor: fmt::Debug + Send + Sync {
    /// Whether a batch carries the name that it was handed in under.
    const TAKES_NOTES: bool;
    /// Asks for pages of a hundred batches.
    const PAGE_SIZE: (&'static str, &'static str) = ("limit", "100");
    /// Asks for the page behind what [`Self::next_page`] has named.
    const PAGE_AFTER: &'static str;
    /// Where a page's batches stand in it.
    const PAGE: &'static str = "data";
    /// Reads one line of the answers.
    const READ_LINE: ReadLine;

    /// Where batches are listed, looked at and cancelled.
    fn batches(&self) -> &BatchEndpoint;

    /// Where answers are read.
    fn outputs(&self) -> &BatchEndpoint {
        self.batches()
    }

    /// A request's line; `body` is what it would be alone. `operation` says what it asks where it is in
    /// the vendor's own form.
    fn line(
        &self,
        custom_id: &str,
        model: &str,
        operation: Option<Operation>,
        body: &[u8],
    ) -> Vec<u8>;

    /// Stores the lines in a file, where the vendor takes them so; its id.
    fn store(
        &self,
        _name: &str,
        _lines: &[Vec<u8>],
    ) -> impl Future<Output = Result<Option<String>, Error>> + Send {
        async { Ok(None) }
    }

    /// Removes such a file.
    fn remove(&self, _file: &str) -> impl Future<Output = Result<(), Error>> + Send {
        async { Ok(()) }
    }

    /// Makes the batch of the lines or of their file.
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

    /// When it was made.
    fn created(batch: &Value) -> Option<DateTime<Utc>>;

    /// Whether it may have been handed in under this name, with so many requests, since then.
    fn is(batch: &Value, name: &str, requests: usize, since: DateTime<Utc>) -> bool;

    /// What the next page begins behind; `None` after the last one that can hold a batch made since
    /// then. Most lists begin with the newest batch, and go on behind an id.
    fn next_page(list: &Value, since: DateTime<Utc>) -> Option<String> {
        let last = list.get(Self::PAGE)?.as_array()?.last()?;
        let more = list.get("has_more").and_then(Value::as_bool).unwrap_or(false);
        let over = Self::created(last).is_some_and(|created| created < since);
        if more && !over { Self::id(last) } else { None }
    }

    /// How far a batch is; `None` for what is no batch.
    fn state(batch: &Value) -> Option<State>;

    /// What stands behind a batches' endpoint to cancel one.
    fn cancels(id: &str) -> Vec<String> {
        vec![id.to_owned(), "cancel".to_owned()]
    }

    /// The file of its requests, where there is one that can be removed.
    fn requests(_batch: &Value) -> Option<&str> {
        None
    }

    /// The files of its answers: each the path below [`Self::outputs`].
    fn answers(batch: &Value) -> Vec<Vec<String>>;
}

/// A vendor's batch API.
#[derive(Debug)]
pub(crate) struct Batches<V>(pub(crate) V);

impl<V: BatchVendor> Batches<V> {
    /// What the vendor says of a batch.
    async fn described(&self, id: &str) -> Result<Value, Error> {
        let batches = self.0.batches();
        batches.success(&batches.get(id).await?)
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
                // Documents should not stay in the vendor's store for nothing. If they do, that
                // changes nothing here.
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
                let list = batches.success(&batches.list(&query).await?)?;
                let page = list.get(V::PAGE).and_then(Value::as_array).into_iter().flatten();
                let ours = page.filter(|batch| V::is(batch, name, requests, since));
                ids.extend(ours.filter_map(V::id));
                match V::next_page(&list, since) {
                    // A server that knows of no pages sends the same one again.
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
            let reply = batches.get(id).await?;
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
            batches.success(&batches.act(&V::cancels(id)).await?).map(drop)
        })
    }

    fn forget<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            match V::requests(&self.described(id).await?) {
                Some(file) => self.0.remove(file).await,
                None => Ok(()),
            }
        })
    }

    fn answers<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Answers<'a>, Error>> {
        Box::pin(async move {
            let files = V::answers(&self.described(id).await?);
            Ok(self.0.outputs().answers(files, V::READ_LINE))
        })
    }
}

/// Whether a batch was certainly not taken in: the vendor refused it, or never had it. After a fault
/// of the vendor's own it may have been.
fn certainly_refused(answered: &Result<Reply, Error>) -> bool {
    match answered {
        Ok(reply) => !reply.is_success() && reply.status < 500,
        Err(error) => error.charged == Charged::No,
    }
}
