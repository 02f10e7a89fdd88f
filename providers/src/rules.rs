//! The meaning of refusals in every dialect: codes, types and wording that vendors, servers and
//! gateways share, in one table. The first matching row decides, before a vendor's own names and
//! rows.
//!
//! Gateways and compatible servers pass on each other's errors, so that a row holds for every
//! vendor. Bare numbers mean different things at different vendors: they hold only in Zhipu's form.
//! Sources: the vendors' pages of errors (OpenAI, Anthropic, Google, AWS, Zhipu, `DashScope`,
//! `MiniMax`, xAI, Cohere, Cloudflare, GitHub Models, Azure API Management) and the source code of
//! the servers (vLLM, `SGLang`, llama.cpp, LM Studio, TGI, Ollama, `LiteLLM`).

use std::time::Duration;

use crate::{
    envelope::Envelope,
    error::{Kind, Span},
};

/// Wait above which a limit is not one per minute, even if the reply states so.
const LONG_WAIT: Duration = Duration::from_hours(2);

/// The statuses to which a row applies.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Statuses {
    /// Any status.
    Any,
    /// Refusals of a request: 400, 404, 405, 422.
    Request,
    /// Refusals that may be about a limit: 400, 401, 402, 403, 412, 429.
    Limit,
    /// 429 alone.
    TooMany,
    /// These.
    Only(&'static [u16]),
}

impl Statuses {
    fn hold(self, status: u16) -> bool {
        match self {
            Self::Any => true,
            Self::Request => matches!(status, 400 | 404 | 405 | 422),
            Self::Limit => matches!(status, 400..=403 | 412 | 429),
            Self::TooMany => status == 429,
            Self::Only(statuses) => statuses.contains(&status),
        }
    }
}

/// A sign of a failure besides the status.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sign {
    /// No further sign.
    Status,
    /// A code of exactly this name, or a type if there is no code, because a code is more exact
    /// than a type. Case is ignored.
    Name(&'static str),
    /// A numeric code without a type, as Zhipu writes it.
    Number(&'static str),
    /// A type of exactly this name, with any code.
    Type(&'static str),
    /// A message that contains all of these, in lower case.
    Says(&'static [&'static str]),
    /// A message or a name that contains one word of each list, in lower case and with spaces
    /// between the words of a name: a thing and what happened to it.
    OneOfEach(&'static [&'static str], &'static [&'static str]),
}

impl Sign {
    fn is_in(self, envelope: &Envelope) -> bool {
        let Envelope { codes, numbers, types, .. } = envelope;
        match self {
            Self::Status => true,
            Self::Name(name) => {
                let is = |given: &String| given.eq_ignore_ascii_case(name);
                codes.iter().any(is) || codes.is_empty() && types.iter().any(is)
            }
            Self::Number(number) => types.is_empty() && numbers.iter().any(|it| it == number),
            Self::Type(name) => types.iter().any(|class| class == name),
            Self::Says(parts) => envelope.has_message(parts),
            Self::OneOfEach(things, events) => envelope.has_one_of_each(things, events),
        }
    }
}

/// A row: on these statuses, this sign means this kind of failure, of a limit with this period.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    statuses: Statuses,
    pub(crate) sign: Sign,
    pub(crate) kind: Kind,
    span: Option<Span>,
}

impl Row {
    pub(crate) fn fits(&self, status: u16, envelope: &Envelope) -> bool {
        self.statuses.hold(status) && self.sign.is_in(envelope)
    }
}

pub(crate) const fn row(statuses: Statuses, sign: Sign, kind: Kind) -> Row {
    Row { statuses, sign, kind, span: None }
}

const fn spent(span: Span, sign: Sign) -> Row {
    spent_on(Statuses::Limit, span, sign)
}

const fn spent_on(statuses: Statuses, span: Span, sign: Sign) -> Row {
    Row { statuses, sign, kind: Kind::QuotaExhausted, span: Some(span) }
}

use Sign::{Name, Number, OneOfEach, Says};

/// What a request has in tokens.
const LENGTHS: &[&str] = &[
    "token",
    "prompt",
    "input length",
    "input is",
    "context limit",
    "context length",
    "characters",
];

/// A length is above its bound.
const EXCEEDS: &[&str] = &[
    "exceed",
    "too long",
    "too many",
    "longer than",
    "larger than",
    "more than max",
    "must be less than",
    "must have less than",
    "must be <=",
    "only supports up to",
];

/// What bounds an answer.
const CAPS: &[&str] = &[
    "max_tokens",
    "max tokens must",
    "max_completion_tokens",
    "max_output_tokens",
    "maxoutputtokens",
    "maximum tokens you requested",
];

/// A bound that the model does not take.
const CAP_EXCEEDS: &[&str] = &[
    "is too large",
    "must be less than",
    "must be at most",
    "less than or equal",
    "maximum allowed",
    "supported range",
    "range of",
    "tokens you requested exceed",
];

/// What pays for calls.
const MONEY: &[&str] = &[
    "balance", "billing", "budget", "credit", "fund", "invoice", "package", "payment", "prepaid",
    "余额", "额度",
];

/// There is no money.
const SPENT: &[&str] = &[
    "insufficient",
    "not enough",
    "exhausted",
    "depleted",
    "too low",
    "overdue",
    "past due",
    "expired",
    "out of",
    "suspended",
    "to be enabled",
    "billing disabled",
    "不足",
    "用尽",
];

/// What a filter looks at, or the filter.
const CONTENT: &[&str] = &["content", "prompt", "guardrail", "moderation", "safety"];

/// A filter has found something.
const WITHHELD: &[&str] = &[
    "violat",
    "is blocked",
    "prompt blocked",
    "content blocked",
    "moderation blocked",
    "censor",
    "flagged by",
    "was flagged",
    "prohibited",
    "inappropriate",
    "intervened",
    "triggered",
    "safety check",
];

const ROWS: &[Row] = &[
    // A limit of a minute that `DashScope` gives the name of a spent account.
    row(Statuses::TooMany, Says(&["allocated quota exceeded"]), Kind::RateLimited),
    row(Statuses::TooMany, Says(&["error-code#token-limit"]), Kind::RateLimited),
    // Money: nothing refills it.
    spent(Span::Credit, Name("billing_not_active")),
    spent(Span::Credit, Name("account_deactivated")),
    spent(Span::Credit, Name("insufficient_quota")),
    spent(Span::Credit, Name("insufficient_user_quota")),
    spent(Span::Credit, Name("pre_consume_token_quota_failed")),
    spent(Span::Credit, Name("billing_hard_limit_reached")),
    spent(Span::Credit, Name("credit_limit")),
    spent(Span::Credit, Name("CreditsError")),
    spent(Span::Credit, Name("budget_exceeded")),
    spent(Span::Credit, Name("Arrearage")),
    spent(Span::Credit, Name("PrepaidBillOverdue")),
    spent(Span::Credit, Name("AllocationQuota.FreeTierOnly")),
    // The owner's own bound on a model, at Volcengine.
    spent(Span::Credit, Name("SetLimitExceeded")),
    spent(Span::Credit, Number("1113")),
    spent(Span::Credit, Number("1309")),
    spent_on(Statuses::Any, Span::Credit, Name("status_code 1008")),
    spent(Span::Credit, Name("NOT_ENOUGH_BALANCE")),
    spent(Span::Credit, OneOfEach(MONEY, SPENT)),
    spent(Span::Credit, Says(&["account balance is $0"])),
    spent(Span::Credit, Says(&["exceeded your current quota", "platform.openai.com"])),
    spent(Span::Credit, Says(&["欠费"])),
    spent(Span::Credit, Says(&["budget has been exceeded"])),
    spent(Span::Credit, Says(&["used all available credits"])),
    spent(Span::Credit, Says(&["requires more credits"])),
    spent(Span::Credit, Says(&["can only afford"])),
    spent(Span::Credit, Says(&["credit limit exceeded"])),
    spent(Span::Credit, Says(&["any credits"])),
    spent(Span::Credit, Says(&["free tier", "exhausted"])),
    spent(Span::Key, Says(&["key limit exceeded"])),
    spent(Span::Key, Says(&["key", "total limit"])),
    // Not a context that is too small: the bound on the answer is too large.
    row(Statuses::Request, OneOfEach(CAPS, CAP_EXCEEDS), Kind::OutputCapTooLarge),
    // The document does not fit.
    row(Statuses::Any, Name("context_length_exceeded"), Kind::TooLarge),
    row(Statuses::Any, Name("exceed_context_size_error"), Kind::TooLarge),
    row(Statuses::Any, Name("tokens_limit_reached"), Kind::TooLarge),
    row(Statuses::Request, Number("1261"), Kind::TooLarge),
    row(Statuses::Any, Name("string_above_max_length"), Kind::TooLarge),
    row(Statuses::Any, Says(&["contextwindowexceeded"]), Kind::TooLarge),
    row(Statuses::Any, Says(&["context length"]), Kind::TooLarge),
    row(Statuses::Any, Says(&["context size"]), Kind::TooLarge),
    row(Statuses::Any, Says(&["context window"]), Kind::TooLarge),
    row(Statuses::Any, Says(&["n_keep", "n_ctx"]), Kind::TooLarge),
    row(Statuses::Any, Says(&["maximum prompt length"]), Kind::TooLarge),
    row(Statuses::Any, Says(&["prompt is too long"]), Kind::TooLarge),
    row(Statuses::Any, Says(&["input is too long"]), Kind::TooLarge),
    row(Statuses::Any, Says(&["too large to process"]), Kind::TooLarge),
    row(Statuses::Any, Says(&["range of input length"]), Kind::TooLarge),
    row(Statuses::Any, Says(&["inputs", "max_new_tokens", "must be <="]), Kind::TooLarge),
    row(Statuses::Any, Says(&["inputs", "must have less than", "tokens"]), Kind::TooLarge),
    row(Statuses::Any, Says(&["longer than the maximum model length"]), Kind::TooLarge),
    row(Statuses::Any, Says(&["超长"]), Kind::TooLarge),
    // With a 429, "too many tokens" means those of a minute.
    row(Statuses::Request, OneOfEach(LENGTHS, EXCEEDS), Kind::TooLarge),
    row(Statuses::Request, Says(&["reduce the length of"]), Kind::TooLarge),
    row(Statuses::Any, Says(&["payload size exceeds"]), Kind::TooLarge),
    row(Statuses::Any, Says(&["request entity too large"]), Kind::TooLarge),
    // Longer limits; after money, whose messages contain "monthly" as well.
    spent(Span::Hours, Number("1308")),
    spent(Span::Hours, Name("usage_limit_reached")),
    spent_on(Statuses::Any, Span::Hours, Name("status_code 2056")),
    spent(
        Span::Hours,
        OneOfEach(&["hour usage", "hourly usage", "session usage"], &["limit", "quota"]),
    ),
    spent(Span::Hours, Says(&["hour limit"])),
    spent(Span::Day, Number("1304")),
    spent_on(Statuses::TooMany, Span::Day, Says(&["per day"])),
    spent_on(Statuses::TooMany, Span::Day, Says(&["per-day"])),
    spent_on(Statuses::TooMany, Span::Day, Says(&["daily"])),
    spent_on(Statuses::TooMany, Span::Day, Says(&["/ day"])),
    spent_on(Statuses::TooMany, Span::Day, Says(&["per 86400s"])),
    spent_on(Statuses::TooMany, Span::Day, Says(&["24 hours"])),
    spent(Span::Month, Says(&["out of", "quota"])),
    spent(Span::Month, Says(&["quota is not enough"])),
    // A limit that refills soon is a 429.
    spent_on(Statuses::Only(&[403]), Span::Month, Says(&["quota", "exceed"])),
    spent(Span::Month, Says(&["specified", "usage limits"])),
    spent(Span::Month, OneOfEach(&["monthly"], &["limit", "quota", "cap"])),
    spent_on(Statuses::TooMany, Span::Month, Says(&["weekly"])),
    spent_on(Statuses::TooMany, Span::Month, Says(&["/ month"])),
    spent_on(Statuses::TooMany, Span::Month, Says(&["per month"])),
    // Withheld answers.
    row(Statuses::Any, Name("content_filter"), Kind::ContentRefused),
    row(Statuses::Any, Name("data_inspection_failed"), Kind::ContentRefused),
    row(Statuses::Any, Name("DataInspectionFailed"), Kind::ContentRefused),
    row(Statuses::Any, Name("ResponsibleAIPolicyViolation"), Kind::ContentRefused),
    row(Statuses::Request, Number("1301"), Kind::ContentRefused),
    row(Statuses::Any, Says(&["content exists risk"]), Kind::ContentRefused),
    row(Statuses::Any, Says(&["content filter"]), Kind::ContentRefused),
    row(Statuses::Any, Says(&["content management policy"]), Kind::ContentRefused),
    row(Statuses::Any, OneOfEach(&["sensitivecontent"], &["detected"]), Kind::ContentRefused),
    row(Statuses::Any, Says(&["new_sensitive"]), Kind::ContentRefused),
    row(Statuses::Request, Name("invalid_prompt"), Kind::ContentRefused),
    row(Statuses::Any, Says(&["safety system"]), Kind::ContentRefused),
    row(Statuses::Any, Says(&["content policy"]), Kind::ContentRefused),
    row(Statuses::Any, Says(&["inappropriate content"]), Kind::ContentRefused),
    row(Statuses::Any, Name("content_policy_violation"), Kind::ContentRefused),
    row(Statuses::Any, Name("moderation_blocked"), Kind::ContentRefused),
    row(Statuses::Any, Says(&["flagged by moderation"]), Kind::ContentRefused),
    row(Statuses::Any, Says(&["was flagged"]), Kind::ContentRefused),
    row(Statuses::Any, Says(&["guardrail", "violat"]), Kind::ContentRefused),
    row(Statuses::Any, Says(&["guardrail", "intervened"]), Kind::ContentRefused),
    row(Statuses::Request, Says(&["敏感"]), Kind::ContentRefused),
    row(Statuses::Any, OneOfEach(CONTENT, WITHHELD), Kind::ContentRefused),
    // The key, in a request's refusal.
    row(
        Statuses::Request,
        OneOfEach(&["api key"], &["incorrect", "invalid", "not valid"]),
        Kind::Unauthorized,
    ),
    row(Statuses::Any, Name("status_code 1004"), Kind::Unauthorized),
    row(Statuses::Any, Name("status_code 2049"), Kind::Unauthorized),
    // `MiniMax`: requests, tokens, connections.
    row(Statuses::Any, Name("status_code 1002"), Kind::RateLimited),
    row(Statuses::Any, Name("status_code 1039"), Kind::RateLimited),
    row(Statuses::Any, Name("status_code 1041"), Kind::RateLimited),
    row(Statuses::Any, Name("status_code 2013"), Kind::InvalidRequest),
    // The model wrote no JSON: another attempt may.
    row(Statuses::Any, Name("json_validate_failed"), Kind::InvalidOutput),
    row(Statuses::Any, Name("output_parse_failed"), Kind::InvalidOutput),
    row(Statuses::Any, Name("tool_use_failed"), Kind::Transient),
    // Shared by every document of the batch: the model's name, …
    row(Statuses::Request, Name("DeploymentNotFound"), Kind::UnknownModel),
    row(Statuses::Request, Name("model_not_available"), Kind::UnknownModel),
    row(Statuses::Request, Number("1211"), Kind::UnknownModel),
    row(Statuses::Request, Says(&["模型不存在"]), Kind::UnknownModel),
    row(Statuses::Request, Says(&["non-serverless model"]), Kind::UnknownModel),
    row(Statuses::Request, Says(&["not a valid model"]), Kind::UnknownModel),
    row(Statuses::Request, Says(&["model not exist"]), Kind::UnknownModel),
    row(Statuses::Request, Says(&["model not found"]), Kind::UnknownModel),
    row(Statuses::Request, Says(&["unknown model"]), Kind::UnknownModel),
    row(Statuses::Request, Says(&["no such model"]), Kind::UnknownModel),
    row(Statuses::Request, Says(&["the model", "does not exist"]), Kind::UnknownModel),
    // … and the features that the batch uses.
    row(Statuses::Request, Name("unsupported_parameter"), Kind::Unsupported),
    row(Statuses::Request, Name("unsupported_value"), Kind::Unsupported),
    row(Statuses::Request, Says(&["unsupported parameter"]), Kind::Unsupported),
    row(Statuses::Request, Says(&["is deprecated for this model"]), Kind::Unsupported),
    row(Statuses::Request, Says(&["not supported", "this model"]), Kind::Unsupported),
    row(Statuses::Request, Says(&["unrecognized request argument"]), Kind::Unsupported),
    row(Statuses::Request, Says(&["on-demand throughput"]), Kind::Unsupported),
    row(Statuses::Request, Says(&["invalid schema for response_format"]), Kind::Unsupported),
    row(Statuses::Request, Says(&["method not allowed"]), Kind::Unsupported),
];

/// The table's meaning of a refusal; `None` if no row matches. `wait` is the provider's requested
/// wait.
pub(crate) fn find(
    status: u16,
    envelope: &Envelope,
    wait: Option<Duration>,
) -> Option<(Kind, Option<Span>)> {
    if let Some(row) = ROWS.iter().find(|row| row.fits(status, envelope)) {
        return Some((row.kind, row.span));
    }
    let is_long = wait.is_some_and(|wait| wait >= LONG_WAIT);
    (status == 429 && is_long).then(|| (Kind::QuotaExhausted, wait.map(span_of)))
}

/// Whether a row matches a refusal whose words may be kept. A filter's words may quote the document
/// unless the row knows them.
pub(crate) fn knows(status: u16, envelope: &Envelope) -> bool {
    let may_quote =
        |row: &Row| row.kind == Kind::ContentRefused && matches!(row.sign, OneOfEach(..));
    ROWS.iter().any(|row| !may_quote(row) && row.fits(status, envelope))
}

/// The period of a limit, by the time until it refills.
pub(crate) fn span_of(wait: Duration) -> Span {
    match wait.as_secs() {
        0..3_600 => Span::Minute,
        3_600..21_600 => Span::Hours,
        21_600..172_800 => Span::Day,
        _ => Span::Month,
    }
}

/// The period of a limit that no row names.
pub(crate) fn span(kind: Kind, status: u16, envelope: &Envelope) -> Option<Span> {
    match kind {
        Kind::RateLimited => {
            let at_once = envelope.has_message(&["concurren"])
                || envelope.has_message(&["too many connections"])
                || envelope.has_message(&["parallel requests"])
                || envelope.has_message(&["in flight"]);
            Some(if at_once { Span::Concurrency } else { Span::Minute })
        }
        Kind::QuotaExhausted if status == 402 || status == 412 => Some(Span::Credit),
        Kind::QuotaExhausted => {
            let names = || envelope.codes.iter().chain(&envelope.types);
            let holds = |part: &str| names().any(|name| name.contains(part));
            if holds("PerDay") || envelope.has_message(&["per day"]) {
                Some(Span::Day)
            } else if holds("spend_limit") || holds("usage_limit") {
                Some(Span::Month)
            } else {
                Some(Span::Credit)
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{classify::ErrorNames, vendor::Vendor};

    /// A reply that has only the sign.
    fn example(sign: Sign) -> Envelope {
        let mut envelope = Envelope::default();
        match sign {
            Sign::Status => {}
            Name(name) => envelope.codes.push(name.to_owned()),
            Number(number) => envelope.numbers.push(number.to_owned()),
            Sign::Type(name) => envelope.types.push(name.to_owned()),
            Says(parts) => envelope.messages.push(parts.join(" ")),
            OneOfEach(things, events) => {
                envelope.messages.push(format!("{} {}", things[0], events[0]));
            }
        }
        envelope
    }

    fn statuses(row: &Row) -> impl Iterator<Item = u16> {
        (400..600).filter(|status| row.statuses.hold(*status))
    }

    #[test]
    fn every_row_decides_something() {
        for (place, row) in ROWS.iter().enumerate() {
            let reply = example(row.sign);
            let is_first = |status: u16| ROWS.iter().position(|it| it.fits(status, &reply));
            assert!(statuses(row).any(|status| is_first(status) == Some(place)), "{row:?}");
        }
    }

    #[test]
    fn every_row_of_a_vendor_decides_something() {
        for vendor in Vendor::known() {
            let ErrorNames::Rows(rows) = vendor.0.error_names else { continue };
            for row in rows {
                let reply = example(row.sign);
                let is_known = |status| knows(status, &reply);
                assert!(!statuses(row).all(is_known), "{vendor}: {row:?} is in the common table");
            }
        }
    }

    #[test]
    fn replies_of_vendors_and_gateways() {
        let (spent, large) = (Kind::QuotaExhausted, Kind::TooLarge);
        let withheld = Kind::ContentRefused;
        #[rustfmt::skip]
        let cases = [
            // DashScope: tokens of a minute, under the name of a spent account.
            (429, r#"{"code":"insufficient_quota","message":"Allocated quota exceeded, please increase your quota limit."}"#, Kind::RateLimited),
            // LiteLLM: an error as Python prints it.
            (429, r#"{"error":{"message":"OpenAIException - Error code: 429 - {'error': {'message': 'Pay', 'type': 'insufficient_quota', 'param': None}}","code":"429"}}"#, spent),
            (429, r#"{"error":{"message":"Your project has exceeded its monthly spending cap.","status":"RESOURCE_EXHAUSTED"}}"#, spent),
            (403, r#"{"error":{"code":"AccountOverdueError","message":"The account has an overdue balance."}}"#, spent),
            (403, r#"{"error":{"status":"PERMISSION_DENIED","message":"This API method requires billing to be enabled."}}"#, spent),
            (403, r#"{"statusCode":403,"message":"Out of bandwidth quota. Quota will be replenished in 02:10:00."}"#, spent),
            (401, "{\"error\":{\"message\":\"该令牌额度已用尽\"}}", spent),
            (412, r#"{"error":{"message":"Budget exhausted"}}"#, spent),
            (200, r#"{"choices":null,"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}"#, spent),
            (400, r#"{"error":{"message":"Unable to submit request because the input token count is 1251952 but model only supports up to 1048576."}}"#, large),
            (400, r#"{"error":{"message":"x","code":"model_max_prompt_tokens_exceeded"}}"#, large),
            (400, r#"{"error":{"message":"tokens in request more than max tokens allowed","code":"1210"}}"#, large),
            (400, r#"{"code":20015,"message":"length of prompt_tokens (83013) must be less than max_seq_len (32768)."}"#, large),
            (400, r#"{"error":{"code":"characters_too_long","message":"the max input characters is 20000"}}"#, large),
            (400, r#"{"error":{"message":"max_tokens is too large: 9000. This model supports at most 4096"}}"#, Kind::OutputCapTooLarge),
            (403, r#"{"code":"The caller does not have permission","error":"Content violates usage guidelines."}"#, withheld),
            (400, r#"{"error":{"code":"InputTextSensitiveContentDetected","message":"x"}}"#, withheld),
            (400, r#"{"message":"Request contains prohibited content"}"#, withheld),
            (400, r#"{"error":"Prompt blocked due to security configurations"}"#, withheld),
            (400, r#"{"error":{"message":"Incorrect API key provided: xa***"}}"#, Kind::Unauthorized),
            (400, r#"{"error":{"code":"output_parse_failed","message":"x"}}"#, Kind::InvalidOutput),
        ];
        for (status, body, kind) in cases {
            let found = find(status, &Envelope::read(body.as_bytes()), None);
            assert_eq!(found.map(|(kind, _)| kind), Some(kind), "{status} {body}");
        }
        // A limit of a minute that mentions billing or the account.
        for message in [
            "You exceeded your current quota, please check your plan and billing details.",
            "Rate limit reached on tokens per min. You can increase your rate limit by adding a payment method.",
        ] {
            let body = serde_json::json!({"error": {"message": message}}).to_string();
            assert_eq!(find(429, &Envelope::read(body.as_bytes()), None), None, "{message}");
        }
    }

    /// Mistral's codes are numbers too.
    #[test]
    fn a_number_beside_a_type_is_another_vendors() {
        let zhipu = Envelope::read(br#"{"error":{"code":"1113","message":"pay"}}"#);
        assert_eq!(find(429, &zhipu, None), Some((Kind::QuotaExhausted, Some(Span::Credit))));
        let other = br#"{"object":"error","type":"some_error","code":"1113","message":"m"}"#;
        assert_eq!(find(429, &Envelope::read(other), None), None);
    }
}
