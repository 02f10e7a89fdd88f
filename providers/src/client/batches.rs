//! The vendor's batches, where it has any.

use std::{collections::VecDeque, fmt};

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{Api, Client};
use crate::{
    batch::{self, Answer, Answers, Batches, Source},
    desk::{Desk, text},
    envelope::Envelope,
    error::{Error, Kind},
    exchange::{Lines, Reply},
    message::Redactor,
    observed::Observed,
    provider::{BoxFuture, Document, Request},
    refusal::Context,
};

/// In the place of the request that a reply of a batch answers: nobody knows it any more.
const FORGOTTEN: Request<'static> = Request {
    model: "",
    instructions: "",
    document: Document::Text(""),
    max_output_tokens: 0,
    schema: None,
    cache_instructions: false,
};

impl<A: Api> Client<A> {
    fn desk(&self) -> Result<&dyn Desk, Error> {
        self.batches
            .as_deref()
            .ok_or_else(|| Error::unsent(Kind::InvalidRequest, "this provider has no batches"))
    }

    fn context(&self) -> Context<'_> {
        Context::new(A::VENDOR, Redactor::of_key(self.key.as_ref()), Observed::default())
            .retrying(&self.retry_codes)
    }

    /// What a success says.
    fn told(&self, reply: &Reply) -> Result<Value, Error> {
        if !reply.is_success() {
            return Err(self.refused(reply));
        }
        reply.json().map_err(|why| self.context().unreadable(reply, why))
    }

    /// Without the vendor's sentence: it may quote any of the documents, and nobody has them at
    /// hand to find that.
    fn refused(&self, reply: &Reply) -> Error {
        let error = self.context().refused(reply);
        let name = Envelope::read(&reply.body);
        let name = name
            .codes
            .first()
            .or_else(|| name.types.first())
            .map_or_else(String::new, |name| format!(" {name}"));
        let message = Redactor::of_key(self.key.as_ref()).clean(&format!(
            "{}: status {}{name}",
            A::VENDOR,
            reply.status
        ));
        Error { message, ..error }
    }

    fn unreadable(&self, reply: &Reply) -> Error {
        self.context().unreadable(reply, "it is no batch (is base-url right?)")
    }
}

impl<A: Api> Batches for Client<A> {
    fn line(&self, custom_id: &str, request: &Request<'_>) -> Result<Vec<u8>, Error> {
        Ok(self.desk()?.line(custom_id, &self.api.body(request)?))
    }

    fn submit<'a>(
        &'a self,
        name: &'a str,
        lines: &'a [Vec<u8>],
    ) -> BoxFuture<'a, Result<String, Error>> {
        Box::pin(async move {
            let reply = self.desk()?.submit(name, lines).await?;
            text(&self.told(&reply)?, "/id").ok_or_else(|| self.unreadable(&reply))
        })
    }

    fn find<'a>(
        &'a self,
        name: &'a str,
        requests: usize,
        since: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<Vec<String>, Error>> {
        Box::pin(async move {
            let desk = self.desk()?;
            let list = self.told(&desk.list().await?)?;
            let batches = list.get("data").and_then(Value::as_array).into_iter().flatten();
            Ok(batches
                .filter(|batch| desk.is(batch, name, requests, since))
                .filter_map(|batch| text(batch, "/id"))
                .collect())
        })
    }

    fn takes_notes(&self) -> bool {
        self.batches.as_deref().is_some_and(Desk::takes_notes)
    }

    fn forget<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let desk = self.desk()?;
            let batch = self.told(&desk.get(id).await?)?;
            match desk.forget(&batch).await? {
                Some(reply) if !reply.is_success() => Err(self.refused(&reply)),
                _ => Ok(()),
            }
        })
    }

    fn state<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<batch::State, Error>> {
        Box::pin(async move {
            let desk = self.desk()?;
            let reply = desk.get(id).await?;
            desk.state(&self.told(&reply)?).ok_or_else(|| self.unreadable(&reply))
        })
    }

    fn cancel<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move { self.told(&self.desk()?.cancel(id).await?).map(drop) })
    }

    fn answers<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Answers<'a>, Error>> {
        Box::pin(async move {
            let desk = self.desk()?;
            let batch = self.told(&desk.get(id).await?)?;
            Ok(Answers::new(Files { client: self, files: desk.files(&batch).into(), open: None }))
        })
    }
}

/// The files that a batch left, line by line.
struct Files<'a, A> {
    client: &'a Client<A>,
    files: VecDeque<Vec<String>>,
    open: Option<Lines>,
}

impl<A> fmt::Debug for Files<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("files", &self.files).finish_non_exhaustive()
    }
}

impl<A: Api> Source for Files<'_, A> {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Answer>, Error>> {
        Box::pin(async move {
            loop {
                let Some(lines) = &mut self.open else {
                    let Some(file) = self.files.pop_front() else { return Ok(None) };
                    let opened = self.client.desk()?.open(&file).await?;
                    self.open = Some(opened.map_err(|reply| self.client.refused(&reply))?);
                    continue;
                };
                match lines.next().await {
                    Ok(Some(line)) => {
                        if let Some(answer) =
                            serde_json::from_slice(&line).ok().and_then(|line| self.answer(&line))
                        {
                            return Ok(Some(answer));
                        }
                    }
                    Ok(None) => self.open = None,
                    Err(reason) => {
                        let text = Redactor::of_key(self.client.key.as_ref())
                            .clean(&format!("the answers of a batch broke off: {reason}"));
                        return Err(Error::unsent(Kind::Transient, &text));
                    }
                }
            }
        })
    }
}

impl<A: Api> Files<'_, A> {
    fn answer(&self, line: &Value) -> Option<Answer> {
        let (custom_id, reply) = self.client.batches.as_deref()?.answer(line)?;
        Some(Answer { custom_id, result: reply.map(|reply| self.client.read(&FORGOTTEN, &reply)) })
    }
}
