//! Builds an [`Error`] from a reply without an answer.

use std::time::Duration;

use crate::{
    classify::{self, Classifier},
    envelope::Envelope,
    error::{Charged, Error, Kind},
    error_rule::ErrorRule,
    exchange::{Cut, Reply},
    json, known_names,
    message::Redactor,
    observed::Observed,
    rules, wait_hint,
};

/// The context of the reply that the error needs.
pub(crate) struct Context<'a> {
    /// The provider's configured name.
    provider: &'a str,
    classifier: &'a Classifier,
    redactor: Redactor<'a>,
    pub(crate) observed: Observed,
    /// The user's own rules for the provider.
    errors: &'a [ErrorRule],
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        provider: &'a str,
        classifier: &'a Classifier,
        errors: &'a [ErrorRule],
        redactor: Redactor<'a>,
        observed: Observed,
    ) -> Self {
        Self { provider, classifier, redactor, observed, errors }
    }

    /// The error of a reply whose status is no success. If the body is cut, unreadable or missing,
    /// the status decides.
    pub(crate) fn refused(self, reply: &Reply) -> Error {
        let mut envelope = Envelope::read(&reply.utf8());
        // AWS: `ThrottlingException:http://internal.amazon.com/…`.
        let class = wait_hint::text(&reply.headers, "x-amzn-errortype")
            .and_then(|class| class.split(':').next());
        envelope.types.extend(class.map(str::to_owned));
        self.classified(reply, reply.status, &envelope)
    }

    /// The error of a refused call to a model, which may be refused for the model's name. In other
    /// requests a 404 concerns another resource: a deleted batch, or a missing list.
    pub(crate) fn refused_call(self, reply: &Reply) -> Error {
        let is_about_the_model =
            classify::is_about_the_model(reply.status, &Envelope::read(&reply.utf8()));
        let error = self.refused(reply);
        match error.kind {
            Kind::InvalidRequest if is_about_the_model => {
                Error { kind: Kind::UnknownModel, ..error }
            }
            _ => error,
        }
    }

    /// The error of a success with an error inside, as some gateways and all streams send it.
    pub(crate) fn error_in_success(self, reply: &Reply, envelope: &Envelope) -> Error {
        self.classified(reply, rules::status_in_success(envelope), envelope)
    }

    /// The error of a success whose body is incomplete, or not in a form that the vendor sends.
    pub(crate) fn unreadable(self, reply: &Reply, what: &str) -> Error {
        let (kind, text) = match &reply.cut {
            Some(Cut::Broken(reason)) => (Kind::Timeout, format!("the answer broke off: {reason}")),
            // Another call would buy the same again.
            Some(Cut::TooLong) => {
                (Kind::InvalidOutput, "the answer is longer than any answer can be".to_owned())
            }
            Some(Cut::NoRoom) => {
                let text = "other answers of more than a MiB took the memory for it for too long";
                (Kind::InvalidOutput, text.to_owned())
            }
            None => {
                let is_too_large = json::has_too_many_values(&reply.body);
                let kind = if is_too_large { Kind::InvalidOutput } else { Kind::Transient };
                (kind, format!("the answer cannot be read: {what}"))
            }
        };
        self.error(reply, kind, &text, None, Charged::Unknown)
    }

    /// The error of a whole reply without an answer: the model refused, or ran out of context.
    pub(crate) fn no_answer(
        self,
        reply: &Reply,
        kind: Kind,
        text: &str,
        charged: Charged,
    ) -> Error {
        self.error(reply, kind, text, None, charged)
    }

    /// Whether an error is known by its name or wording. Messages of others are not kept.
    pub(crate) fn knows(&self, status: u16, envelope: &Envelope) -> bool {
        self.errors.iter().any(|rule| rule.fits(status, envelope))
            || rules::knows(status, envelope)
            || self.classifier.by_code(status, envelope).is_some()
            || self.classifier.by_type(status, envelope).is_some()
            || known_names::has_one(envelope)
    }

    fn classified(self, reply: &Reply, status: u16, envelope: &Envelope) -> Error {
        let now = wait_hint::clock(&reply.headers);
        let hint = wait_hint::read(&reply.headers, envelope, now);
        // Another refusal is not about the limit that the headers state.
        let of_window = || wait_hint::end_of_window(&reply.headers, now);
        let hint = hint.or_else(|| of_window().filter(|_| status == 429));
        let by_type = || self.classifier.by_type(status, envelope);
        let own = self.errors.iter().find(|rule| rule.fits(status, envelope));
        let own = own.map(|rule| (rule.is.kind, rule.is.span));
        let rule = own.or_else(|| rules::find(status, envelope, hint));
        let kind = if let Some((kind, _)) = rule {
            kind
        } else {
            self.classifier.by_code(status, envelope).unwrap_or_else(|| {
                obey_should_retry(
                    reply,
                    by_type().unwrap_or_else(|| classify::by_status(status)),
                    by_type().is_some(),
                    hint,
                )
            })
        };
        let named = rule.filter(|(known, _)| *known == kind).and_then(|(_, span)| span);
        let span = named.or_else(|| rules::span(kind, status, envelope));
        let retry_after = hint.filter(|_| kind.is_retryable() || kind == Kind::QuotaExhausted);
        let shown = match envelope.status {
            None if reply.is_success() => {
                format!("an error in an answer with the status {}", reply.status)
            }
            _ => format!("status {status}"),
        };
        let text = if self.knows(status, envelope) {
            let name = envelope.codes.first().or_else(|| envelope.types.first());
            let name = name.map_or_else(String::new, |name| format!(" {name}"));
            let said = envelope.messages.first();
            let said = said.map_or_else(String::new, |message| format!(": {message}"));
            format!("{shown}{name}{said}")
        } else {
            format!("{shown}{}", known_names::instead_of(envelope))
        };
        let error = self.error(reply, kind, &text, retry_after, charged(kind, status));
        Error { span, ..error }
    }

    /// An error with a message that quotes neither the request nor the key. To find that out takes
    /// time in proportion to the request, so an answer's request id is not cleaned.
    fn error(
        mut self,
        reply: &Reply,
        kind: Kind,
        text: &str,
        retry_after: Option<Duration>,
        charged: Charged,
    ) -> Error {
        // The only text in `observed`.
        let id = self.observed.request_id.map(|id| self.redactor.clean(&id));
        // First, because the provider's message may be cut.
        let call = id.as_ref().map_or_else(String::new, |id| format!(" (call {id})"));
        self.observed.request_id = id;
        let message = self.redactor.clean(&format!("{}{call}: {text}", self.provider));
        Error {
            kind,
            span: None,
            message,
            retry_after,
            charged,
            status: Some(reply.status),
            timed_out: false,
            observed: Box::new(self.observed),
        }
    }
}

/// Applies `x-should-retry`, which the vendors' SDKs obey above all else. They decide whether to
/// retry within seconds; here it is decided whether a document fails. So the header counts only if
/// no code has decided, and:
///
/// * `false` on a 429 without a wait: the limit does not refill, so quota is exhausted. Overload
///   and server errors keep their kind, because for Temporal's later attempt "not now" is not
///   "never".
/// * `true` on a status that would be final and has no name: worth another try.
fn obey_should_retry(reply: &Reply, kind: Kind, is_named: bool, hint: Option<Duration>) -> Kind {
    match (wait_hint::text(&reply.headers, "x-should-retry"), kind) {
        (Some("false"), Kind::RateLimited) if hint.is_none() => Kind::QuotaExhausted,
        (Some("true"), Kind::InvalidRequest) if !is_named => Kind::Transient,
        _ => kind,
    }
}

/// The charge of an error: usually none, but no vendor guarantees it for calls that failed under
/// way.
fn charged(kind: Kind, status: u16) -> Charged {
    match kind {
        Kind::Timeout => Charged::Unknown,
        Kind::Transient if status >= 500 || status == 408 => Charged::Unknown,
        _ => Charged::No,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Context, ErrorRule, Reply};
    use crate::{KeySource, Vendor, key::Key, message::Redactor, observed::Observed, testing};

    /// An unknown error may quote anything, in any form.
    #[test]
    fn the_words_of_an_error_that_is_not_known_are_not_kept() {
        let vendor: Vendor = "openai".parse().unwrap();
        let key = Key::new(None, KeySource::Fixed);
        let message = |body: serde_json::Value, rules: &[ErrorRule]| {
            let (redactor, observed) = (Redactor::of_key(&key), Observed::default());
            let classifier = vendor.classifier();
            let context = Context::new("p", &classifier, rules, redactor, observed);
            context.refused(&Reply::from_json(418, &body)).message
        };
        let body = |code: &str, words: &str| json!({"error": {"message": words, "code": code}});
        let told = message(body("sk-half-of-it", "secretword"), &[]);
        assert!(!told.contains("secretword") && !told.contains("half"), "{told}");
        assert!(told.starts_with("p: status 418: an error that is not known here"), "{told}");
        // A number tells refusals apart.
        assert_eq!(told, message(body("sk-half-of-it", "secretword"), &[]));
        assert_ne!(told, message(body("sk-half-of-it", "another"), &[]));
        let plain = message(json!("secretword"), &[]);
        assert!(!plain.contains("secretword"), "{plain}");
        // Known by its name, or because of the user's rule.
        assert!(message(body("invalid_value", "temperature"), &[]).ends_with("temperature"));
        let rule = ErrorRule { code: Some("teapot".to_owned()), ..ErrorRule::default() };
        assert!(message(body("teapot", "short"), &[rule]).ends_with("teapot: short"));
    }

    #[test]
    fn a_refusal_names_the_provider_as_it_is_configured() {
        let vendor: Vendor = "openai".parse().unwrap();
        let (classifier, key) = (vendor.classifier(), Key::new(None, KeySource::Fixed));
        let context = |name| {
            let redactor = Redactor::of_key(&key);
            Context::new(name, &classifier, &[], redactor, Observed::default())
        };
        let reply = testing::json(400, &json!({"error": {"message": "no such thing"}}));
        let message = context("our-proxy").refused(&reply).message;
        assert!(message.starts_with("our-proxy: "), "{message}");
    }
}
