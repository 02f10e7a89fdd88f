//! Errors in the form of the client's dialect.

use std::time::Duration;

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use serde_json::{Value, json};
use tidegate_calls::{
    Failure,
    dialect::{ClientError, RefusedField},
    failure::Retry,
    verbatim::NoAnswer,
};
use tidegate_providers::Kind;
use tidegate_types::{FailureType, WaitsFor};

/// The vendors' SDKs ignore a longer `retry-after`.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(55);

/// Maximum length of a vendor's error type, code or parameter, in bytes.
const MAX_NAME: usize = 64;

/// The dialect whose form an error has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    OpenAi,
    Anthropic,
}

impl Form {
    /// Chosen by the path, otherwise by a header that only Anthropic's clients send.
    pub(super) fn from_request(path: &str, headers: &HeaderMap) -> Self {
        let is_anthropics =
            path.starts_with("/v1/messages") || headers.contains_key("anthropic-version");
        if is_anthropics { Self::Anthropic } else { Self::OpenAi }
    }
}

/// The reason why a call is not answered.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) message: String,
    names: Box<Names>,
    /// The value of `x-should-retry`; `None`: the status decides.
    again: Option<bool>,
    /// The time after which to ask again, and the ticket that keeps the turn.
    pub(super) turn: Option<(Duration, Option<String>)>,
}

/// The fields by which clients of a vendor distinguish errors.
#[derive(Debug, Clone, Default)]
struct Names {
    /// Replaces the usual type of the status.
    kind: Option<String>,
    code: Option<String>,
    param: Option<String>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let message = message.into();
        // SDKs repeat a conflict unless told not to.
        let again = (status == StatusCode::CONFLICT).then_some(false);
        Self { status, message, names: Box::default(), again, turn: None }
    }

    fn named(mut self, code: Option<&str>, param: Option<&str>) -> Self {
        self.names.code = code.map(str::to_owned);
        self.names.param = param.map(str::to_owned);
        self
    }

    /// A field or a header that cannot be used.
    pub(super) fn invalid(name: &str, what: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, format!("{name} {what}")).named(None, Some(name))
    }

    pub(super) fn no_model(name: &str) -> Self {
        let message = format!(
            "the model {name} does not exist, or this key may not ask it; GET /v1/models lists those that it may"
        );
        Self::new(StatusCode::NOT_FOUND, message).named(Some("model_not_found"), Some("model"))
    }

    pub(super) fn no_key() -> Self {
        let message =
            "the key is missing or wrong; it goes as `Authorization: Bearer …` or `x-api-key: …`";
        Self::new(StatusCode::UNAUTHORIZED, message).named(Some("invalid_api_key"), None)
    }

    /// The problem when this replica is stopping; other replicas still answer.
    pub(super) fn stops() -> Self {
        let message = "this door stops; ask again, and another one answers";
        Self { again: Some(true), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, message) }
    }

    /// The problem when the call's turn is this far away. No call was made.
    pub(super) fn later(failure: &Failure, turn: Duration, ticket: Option<String>) -> Self {
        let turn = Some((turn, ticket));
        Self { turn, again: Some(true), ..Self::from_failure(failure) }
    }

    /// The problem when Temporal does not answer. Its address stays out of the client's message.
    pub(super) fn no_temporal(error: &anyhow::Error) -> Self {
        tracing::warn!("batches cannot be started or asked: {error:#}");
        let message = "the queue of batches does not answer now; try again later";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// The problem for this failure: of a call that was not made, or that was translated.
    pub(super) fn from_failure(failure: &Failure) -> Self {
        let ClientError { status, code } = ClientError::from_failure(failure.kind);
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let again = match failure.kind {
            FailureType::QuotaExhausted
            | FailureType::BudgetExceeded
            | FailureType::Unauthorized => Some(failure.is_retried()),
            _ => None,
        };
        let turn = match failure.retry {
            Retry::ByFaults { at_least, .. } if !at_least.is_zero() => Some((at_least, None)),
            _ => None,
        };
        let message = match failure.waits_for {
            // The failure names Redis's address, which no client of the door needs to know.
            Some(WaitsFor::Redis) => "the quota cannot be asked now; try again later".to_owned(),
            _ => failure.message.clone(),
        };
        Self { again, turn, ..Self::new(status, message) }.named(code, None)
    }

    /// The problem when the provider refused or failed: its status, its names, and its message
    /// without an echo of the request.
    pub(super) fn from_provider(no_answer: &NoAnswer) -> Self {
        let NoAnswer { error, failure, body } = no_answer;
        let told = body.get("error").unwrap_or(body);
        let name = |field: &str| told.get(field).and_then(Value::as_str).filter(|it| is_name(it));
        let status = match error.kind {
            // The provider's key is wrong, not the client's.
            Kind::Unauthorized => Some(StatusCode::BAD_GATEWAY),
            _ if error.timed_out => Some(StatusCode::GATEWAY_TIMEOUT),
            _ => match error.status {
                // The body is an error or no answer, although the status is a success.
                Some(200..300) => Some(Self::from_failure(failure).status),
                status => status.and_then(|status| StatusCode::from_u16(status).ok()),
            },
        };
        let status = status.filter(|status| status.as_u16() >= 400);
        let mut problem =
            Self::new(status.unwrap_or(StatusCode::BAD_GATEWAY), error.message.clone());
        if error.kind != Kind::Unauthorized {
            let name = |field| name(field).map(str::to_owned);
            *problem.names = Names { kind: name("type"), code: name("code"), param: name("param") };
        }
        if !failure.is_retried() {
            problem.again = Some(false);
        }
        problem.turn = error.retry_after.filter(|_| failure.is_retried()).map(|wait| (wait, None));
        problem
    }

    fn usual_type(&self, form: Form) -> &'static str {
        let code = self.names.code.as_deref();
        let error = ClientError { status: self.status.as_u16(), code };
        match form {
            Form::OpenAi => error.of_openai(),
            Form::Anthropic => error.of_anthropic(),
        }
    }

    pub(super) fn response(&self, form: Form) -> Response {
        let Names { kind, code, param } = &*self.names;
        let kind = kind.as_deref().unwrap_or_else(|| self.usual_type(form));
        let body = match form {
            Form::OpenAi => json!({"error": {
                "message": self.message, "type": kind, "param": param, "code": code,
            }}),
            Form::Anthropic => {
                json!({"type": "error", "error": {"type": kind, "message": self.message}})
            }
        };
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut add = |name: &'static str, value: String| {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        };
        if let Some(again) = self.again {
            add("x-should-retry", again.to_string());
        }
        if let Some((turn, ticket)) = &self.turn {
            let after = turn.min(&MAX_RETRY_AFTER).as_secs_f64().ceil().max(1.0);
            add("retry-after", format!("{after}"));
            add("x-tidegate-turn", format!("{:.3}", turn.as_secs_f64()));
            if let Some(ticket) = ticket {
                add("x-tidegate-ticket", ticket.clone());
            }
        }
        response
    }

    /// The wait that the client is told.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        let (turn, _) = self.turn.as_ref()?;
        Some(*turn.min(&MAX_RETRY_AFTER))
    }
}

impl From<RefusedField> for Problem {
    fn from(RefusedField { field, why }: RefusedField) -> Self {
        Self::invalid(&field, &why)
    }
}

/// Whether a text is a vendor's identifier and not prose.
fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.[]".contains(&byte);
    text.len() <= MAX_NAME && text.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    use tidegate_providers::{Charged, Error};
    use tidegate_quota::Refused;

    use super::*;

    #[test]
    fn a_call_without_an_answer_is_told_apart_by_its_cause() {
        let no_reply = |charged| Error::no_reply("no answer".to_owned(), charged);
        let in_success = |kind| Error { kind, status: Some(200), ..no_reply(Charged::No) };
        let spent = json!({"error": {"message": "out", "code": "insufficient_quota"}});
        for (error, body, status, code) in [
            // The connection was closed.
            (no_reply(Charged::Unknown), Value::Null, 502, None),
            (no_reply(Charged::No), Value::Null, 502, None),
            (Error { timed_out: true, ..no_reply(Charged::Unknown) }, Value::Null, 504, None),
            (in_success(Kind::Timeout), Value::Null, 503, None),
            (in_success(Kind::QuotaExhausted), spent, 429, Some("insufficient_quota")),
        ] {
            let failure = Failure::from_provider(&error, &Default::default());
            let problem = Problem::from_provider(&NoAnswer { error, failure, body });
            assert_eq!((problem.status.as_u16(), problem.names.code.as_deref()), (status, code));
        }
    }

    #[test]
    fn a_client_is_told_no_address_of_redis() {
        let refused = Refused::Undecided {
            model: "a:b".parse().unwrap(),
            wait: Duration::from_secs(1),
            ticket: None,
            why: "redis://10.0.0.5:6379: refused".to_owned(),
        };
        let problem = Problem::from_failure(&Failure::refused(&refused));
        assert_eq!(problem.message, "the quota cannot be asked now; try again later");
    }

    /// A translated call has no reply of its own to tell the wait from.
    #[test]
    fn a_providers_wait_is_told_with_its_failure() {
        let wait = Some(Duration::from_secs(41));
        let none = Error::no_reply("slow down".to_owned(), Charged::No);
        for (retry_after, told) in [(wait, Some("41")), (None, None)] {
            let error = Error { kind: Kind::RateLimited, retry_after, ..none.clone() };
            let failure = Failure::from_provider(&error, &Default::default());
            let response = Problem::from_failure(&failure).response(Form::OpenAi);
            let header = response.headers().get("retry-after").map(|it| it.to_str().unwrap());
            assert_eq!((response.status().as_u16(), header), (429, told));
        }
    }
}
