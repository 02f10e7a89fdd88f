//! Reads error bodies of every vendor and gateway.
//!
//! Vendors wrap an error in `{"error":{…}}` with small differences; gateways wrap the vendor's body
//! once more, as an object, in an array, or as JSON inside a message. So the body is searched
//! instead of parsed: all codes, types and messages are collected, the innermost first, because the
//! innermost are the vendor's own.

use serde_json::Value;

use crate::json;

/// How many levels of wrapping are followed.
const MAX_DEPTH: usize = 8;

/// How many elements of an array are read.
const MAX_ELEMENTS: usize = 4;

/// Fields that may hold another level of the error.
const INNER: [&str; 14] = [
    "error",
    "errors",
    "error_chain",
    "innererror",
    "inner_error",
    "external_model_error",
    "details",
    "detail",
    "violations",
    "metadata",
    "raw",
    "body",
    "response",
    "base_resp",
];

/// Fields that hold a message.
const MESSAGES: [&str; 7] =
    ["message", "msg", "Message", "error_msg", "status_msg", "description", "actionReason"];

/// Fields that hold an exact name.
const CODES: [&str; 6] = ["error_code", "code", "reason", "quotaId", "quota_limit", "finishReason"];

/// Fields that hold a class, besides `type`.
const CLASSES: [&str; 3] = ["status", "__type", "error_type"];

/// Signs after a word.
const END_OF_WORD: [char; 6] = ['.', ',', ';', ':', '!', '"'];

/// Fields that hold a wait in seconds.
const WAITS: [&str; 5] =
    ["retry_after", "retryAfter", "retry_after_seconds", "resets_in_seconds", "reset_seconds"];

/// Fields of which every answer has one.
const ANSWERS: [&str; 9] = [
    "choices",
    "output",
    "content",
    "candidates",
    "data",
    "embeddings",
    "result",
    "results",
    "text",
];

/// The contents of an error body; each list has the innermost first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Envelope {
    /// `code`, `error_code`, and Google's `reason` and `quotaId`: the exact names.
    pub(crate) codes: Vec<String>,
    /// Numeric codes, as some vendors have them: "1113".
    pub(crate) numbers: Vec<String>,
    /// When a limit refills: the text of a header that a gateway passes on within the body.
    pub(crate) reset: Option<String>,
    /// `type`, Google's `status`, AWS's `__type` and `OpenRouter`'s `error_type`: the classes.
    pub(crate) types: Vec<String>,
    /// Messages for people.
    pub(crate) messages: Vec<String>,
    /// A numeric `code` that is a status: one that a gateway got or would have sent.
    pub(crate) status: Option<u16>,
    /// AWS's `originalStatusCode`: the model's own status.
    pub(crate) original_status: Option<u16>,
    /// Google's `RetryInfo.retryDelay`.
    pub(crate) retry_delay: Option<String>,
    /// Google's `quotaValue` of zero: a limit that admits nothing.
    pub(crate) limit_is_zero: bool,
    /// `"object": "error"`: the form of Mistral, vLLM and `SGLang`.
    pub(crate) is_error_object: bool,
}

impl Envelope {
    /// Reads any bytes; plain text that is not JSON becomes a message.
    pub(crate) fn read(body: &[u8]) -> Self {
        let mut envelope = Self::default();
        match json::lenient(body) {
            Ok(value) => envelope.visit(&value, 0),
            Err(_) => {
                let text = String::from_utf8_lossy(body);
                let text = text.trim();
                // A gateway's HTML page tells less than its status.
                if !text.is_empty() && !text.starts_with('<') {
                    envelope.text(text, 0);
                }
            }
        }
        envelope
    }

    /// Reads the error in a response with a success status, if there is one: in `error`, of the
    /// whole reply or of its answer, or in the fields of an error instead of those of an answer.
    pub(crate) fn in_success(value: &Value) -> Option<Self> {
        let text = |name| value.get(name).and_then(Value::as_str);
        // `MiniMax`: 0 means success.
        let code = value.pointer("/base_resp/status_code").and_then(Value::as_u64);
        let is_error = value.get("error").is_some_and(says_something)
            || text("type") == Some("error")
            || text("object") == Some("error")
            || code.unwrap_or_default() != 0
            || is_bare_error(value);
        // `OpenRouter`: the model broke off.
        let of_answer = value.pointer("/choices/0/error").filter(|error| says_something(error));
        let mut envelope = Self::default();
        match of_answer {
            _ if is_error => envelope.visit(value, 0),
            Some(error) => envelope.visit(error, 0),
            None => return None,
        }
        Some(envelope)
    }

    /// Whether any message holds all of `parts`, ignoring case.
    pub(crate) fn has_message(&self, parts: &[&str]) -> bool {
        self.messages.iter().any(|message| {
            let message = message.to_ascii_lowercase();
            parts.iter().all(|part| message.contains(part))
        })
    }

    /// Whether any message holds one of `phrases`, ignoring case.
    pub(crate) fn has_message_with_one(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| self.has_message(&[phrase]))
    }

    /// Whether any message or name holds one of `things` and one of `events`, ignoring case. A
    /// space at an edge of an entry is the edge of a word.
    pub(crate) fn has_one_of_each(&self, things: &[&str], events: &[&str]) -> bool {
        let names = self.codes.iter().chain(&self.types).map(|name| name.replace(['_', '-'], " "));
        self.messages.iter().cloned().chain(names).any(|text| {
            let text = format!(" {} ", text.to_ascii_lowercase()).replace(END_OF_WORD, " ");
            let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
            has(things) && has(events)
        })
    }

    fn visit(&mut self, value: &Value, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        match value {
            Value::Array(elements) => elements
                .iter()
                .take(MAX_ELEMENTS)
                .for_each(|element| self.visit(element, depth + 1)),
            Value::String(text) => self.text(text, depth),
            Value::Object(fields) => {
                for inner in INNER.iter().filter_map(|name| fields.get(*name)) {
                    self.visit(inner, depth + 1);
                }
                // `CLOVA`; elsewhere it is a text or a number.
                if let Some(status) = fields.get("status").filter(|status| status.is_object()) {
                    self.visit(status, depth + 1);
                }
                for message in MESSAGES.iter().filter_map(|name| fields.get(*name)) {
                    self.visit(message, depth + 1);
                }
                // Pydantic: its message does not name the field.
                let place = fields.get("msg").and_then(|_| fields.get("loc"));
                let field = place.and_then(Value::as_array).and_then(|place| place.last());
                if let (Some(field), Some(message)) =
                    (field.and_then(Value::as_str), self.messages.last_mut())
                {
                    message.insert_str(0, &format!("{field}: "));
                }
                for code in CODES.iter().filter_map(|name| fields.get(*name)) {
                    self.code(code);
                }
                // `MiniMax`: its numbers mean something else than others'. Elsewhere it is a status.
                let number = fields.get("status_code").and_then(Value::as_u64);
                let number = number.filter(|number| *number >= 1000);
                self.codes.extend(number.map(|number| format!("status_code {number}")));
                for class in CLASSES.iter().filter_map(|name| fields.get(*name)?.as_str()) {
                    // `com.amazon.coral.service#ThrottlingException`
                    self.types.push(class.rsplit('#').next().unwrap_or(class).to_owned());
                }
                let text = |name| fields.get(name).and_then(Value::as_str);
                self.retry_delay =
                    self.retry_delay.take().or_else(|| text("retryDelay").map(str::to_owned));
                let reset =
                    fields.get("headers").and_then(|headers| headers.get("X-RateLimit-Reset"));
                self.reset = self.reset.take().or_else(|| match reset? {
                    Value::String(text) => Some(text.clone()),
                    number => number.as_u64().map(|number| number.to_string()),
                });
                let original = fields.get("originalStatusCode").and_then(Value::as_u64);
                self.original_status =
                    self.original_status.or_else(|| u16::try_from(original?).ok());
                let limits = ["quotaValue", "quota_limit_value"];
                self.limit_is_zero |= limits.iter().any(|name| text(name) == Some("0"));
                let wait = WAITS.iter().find_map(|name| seconds(fields.get(*name)?));
                self.retry_delay = self.retry_delay.take().or(wait);
                self.is_error_object |= text("object") == Some("error");
                match text("type") {
                    // Anthropic's outermost type means only that this is an error.
                    None | Some("error") => {}
                    // Zhipu, in Anthropic's form.
                    Some(number) if number.parse::<u64>().is_ok() => {
                        self.numbers.push(number.to_owned());
                    }
                    Some(class) => self.types.push(class.to_owned()),
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn code(&mut self, code: &Value) {
        let number: Option<u64> = match code {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => match text.parse() {
                Ok(number) => Some(number),
                Err(_) => {
                    self.codes.push(text.clone());
                    None
                }
            },
            _ => None,
        };
        self.numbers.extend(number.map(|number| number.to_string()));
        self.status = self.status.or_else(|| {
            number
                .and_then(|number| u16::try_from(number).ok())
                .filter(|number| (400..600).contains(number))
        });
    }

    /// Adds a message, preceded by the contents of JSON that a gateway may have put into it.
    fn text(&mut self, text: &str, depth: usize) {
        if let (Some(start), Some(end)) = (text.find('{'), text.rfind('}'))
            && start < end
            && let Some(value) = json::literal(&text[start..=end])
        {
            self.visit(&value, depth + 1);
        }
        if !text.trim().is_empty() {
            self.messages.push(text.to_owned());
        }
    }
}

/// Whether an `error` is one: some servers send an empty one with each good answer.
fn says_something(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::Bool(true) => true,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(elements) => elements.iter().any(says_something),
        Value::Object(fields) => fields.values().any(says_something),
    }
}

/// Whether a body has the fields of an error, and no answer: a code with a message, or `FastAPI`'s
/// `detail`.
fn is_bare_error(body: &Value) -> bool {
    let has = |name: &&str| body.get(*name).is_some_and(says_something);
    if ANSWERS.iter().any(has) {
        return false;
    }
    let mut codes = ["code", "error_code"].iter().filter_map(|name| body.get(*name));
    let is_failure = |code: &Value| {
        let is_ok = match code.as_str() {
            Some(text) => ["0", "200", "ok", "success"].contains(&text),
            None => code.as_u64() == Some(200),
        };
        says_something(code) && !is_ok
    };
    body.get("success") == Some(&Value::Bool(false))
        || has(&"detail")
        || codes.any(is_failure) && MESSAGES.iter().any(has)
}

/// A wait in seconds, as a number or a text.
fn seconds(wait: &Value) -> Option<String> {
    match wait {
        Value::Number(number) => Some(format!("{number}s")),
        Value::String(text) => Some(format!("{}s", text.trim_end_matches('s'))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> Envelope {
        Envelope::read(value.to_string().as_bytes())
    }

    #[test]
    fn the_vendors_own_shapes() {
        let anthropic = json!({"type":"error","error":{"type":"rate_limit_error","message":"Slow","details":{"error_code":"ramp_limit_exceeded"}},"request_id":"req_1"});
        let envelope = read(&anthropic);
        assert_eq!(
            (envelope.codes, envelope.types),
            (vec!["ramp_limit_exceeded".to_owned()], vec!["rate_limit_error".to_owned()])
        );
        let openai = json!({"error":{"message":"Slow","type":"tokens","param":null,"code":"rate_limit_exceeded"}});
        let envelope = read(&openai);
        assert_eq!(
            (envelope.codes, envelope.messages),
            (vec!["rate_limit_exceeded".to_owned()], vec!["Slow".to_owned()])
        );
    }

    #[test]
    fn wrappings_are_searched_and_the_inner_comes_first() {
        let inner =
            json!({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}});
        let cases = [
            json!({"error":{"message":format!("Upstream said: {inner}"),"type":"gateway","code":"500"}}),
            json!([{"error":{"message":"x","type":"gateway","metadata":{"raw":inner.to_string()}}}]),
            json!({"detail":[{"msg":"x","type":"gateway","body":inner}]}),
        ];
        for case in cases {
            let envelope = read(&case);
            assert_eq!(envelope.types, ["overloaded_error", "gateway"], "{case}");
            assert_eq!(envelope.messages[0], "Overloaded", "{case}");
        }
        assert_eq!(read(&json!({"error":{"code":429,"message":"x"}})).status, Some(429));
        assert_eq!(read(&json!({"error":"model not found"})).messages, ["model not found"]);
    }

    #[test]
    fn faults_of_json_that_are_tolerated_in_an_answer_are_in_an_error() {
        for body in [
            &b"{\"error\":{\"code\":\"insufficient_quota\",\"score\":NaN}}"[..],
            b"\xef\xbb\xbf{\"error\":{\"code\":\"insufficient_quota\",\"message\":\"\xff\"}}",
        ] {
            assert_eq!(Envelope::read(body).codes, ["insufficient_quota"]);
        }
    }

    #[test]
    fn html_is_ignored_and_plain_text_is_a_message() {
        assert_eq!(Envelope::read(b"<html>502</html>"), Envelope::default());
        assert_eq!(Envelope::read(b"upstream connect error").messages, ["upstream connect error"]);
        assert_eq!(Envelope::read(b""), Envelope::default());
        let deep = "[".repeat(100_000);
        assert_eq!(Envelope::read(deep.as_bytes()).codes.len(), 0);
    }

    #[test]
    fn success_is_searched_only_where_it_holds_an_error() {
        assert!(Envelope::in_success(&json!({"choices":[],"error":null})).is_none());
        assert!(Envelope::in_success(&json!({"error":{"code":502}})).is_some());
        assert!(Envelope::in_success(&json!({"type":"error"})).is_some());
        // In the answer, or in place of one.
        let of_answer = json!({"choices":[{"error":{"code":502,"message":"lost"},"message":{}}]});
        assert_eq!(Envelope::in_success(&of_answer).unwrap().status, Some(502));
        for error in [
            json!({"object":"error","code":404,"message":"no such model"}),
            json!({"code":"rpm_rate_limit_exceeded","msg":"Rate limit reached for RPM"}),
            json!({"error_code":18,"error_msg":"Open api qps request limit reached"}),
            json!({"success":false,"result":{},"errors":[{"code":3036,"message":"m"}]}),
            json!({"detail":"n > 1 is not supported"}),
        ] {
            assert!(Envelope::in_success(&error).is_some(), "{error}");
        }
        for fine in [
            json!({"choices":[{"message":{"content":"Yes"}}],"code":"x","message":"m"}),
            json!({"code":200,"msg":"ok"}),
            json!({"code":"0","message":"done"}),
            json!({"type":"response.code_interpreter_call_code.done","code":"1 + 1"}),
            json!({"type":"message_start","message":{"id":"m"}}),
        ] {
            assert!(Envelope::in_success(&fine).is_none(), "{fine}");
        }
        for none in [
            json!(""),
            json!({}),
            json!([]),
            json!(false),
            json!(0),
            json!({"message":"","code":null}),
        ] {
            let answer =
                json!({"choices":[{"message":{"content":"Yes"},"error":none}],"error":none});
            assert!(Envelope::in_success(&answer).is_none(), "{answer}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(body in proptest::collection::vec(any::<u8>(), 0..400), text in "[{}\\[\\]\":,a-z0-9 é]{0,200}") {
            Envelope::read(&body);
            Envelope::read(text.as_bytes());
        }
    }
}
