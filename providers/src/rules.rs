//! The meaning of refusals in every dialect: codes, types and wording that vendors, servers and
//! gateways share, in one table. The first matching row decides, before a vendor's own names and
//! rows.
//!
//! Gateways and compatible servers pass on each other's errors, so that a row holds for every
//! vendor. Bare numbers mean different things at different vendors: they hold only in Zhipu's form.
//! Sources: the vendors' pages of errors (OpenAI, Anthropic, Google, AWS, Zhipu, `DashScope`,
//! `MiniMax`, xAI, Cohere, Cloudflare, GitHub Models, Azure API Management) and the source code of
//! the servers (vLLM, `SGLang`, llama.cpp, LM Studio, TGI, Ollama, `LiteLLM`).

mod phrases;

use std::time::Duration;

use self::phrases::{
    AT_ONCE, BAD_SCHEMA, CAP_EXCEEDS, CAPS, CONTENT, CONTEXTS, DAILY, DOCUMENTS, EXCEEDS, FILTERED,
    GONE, LENGTHS, LIMITS, MONEY, NO_FEATURE, NO_MODEL, NO_MONEY, NOT_IN_PLAN, NOT_TAKEN,
    OF_ALL_DOCUMENTS, OVERSPENT, PLANS, RATES, REACHED, SCHEMAS, SENSITIVE, SPENT, TEXTS, TOO_LONG,
    WITHHELD,
};
use crate::{
    envelope::Envelope,
    error::{Kind, Span},
};

/// Wait above which a limit is not one per minute, even if the reply states so.
pub(crate) const LONG_WAIT: Duration = Duration::from_hours(2);

/// The statuses to which a row applies.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Statuses {
    /// Any status.
    Any,
    /// Refusals of a request: 400, 404, 405, 422.
    Request,
    /// Refusals for good: 4xx, but neither 408 nor 429.
    Final,
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
            Self::Final => matches!(status, 400..500) && !matches!(status, 408 | 429),
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
    /// A numeric code in Zhipu's forms: its own has no type, Anthropic's has one of Anthropic's.
    Number(&'static str),
    /// A type of exactly this name, with any code.
    Type(&'static str),
    /// A message that contains all of these, in lower case.
    Says(&'static [&'static str]),
    /// A message that contains one of these, in lower case.
    SaysOne(&'static [&'static str]),
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
            Self::Number(number) => {
                let is_anthropics = types.iter().all(|class| class.ends_with("_error"));
                is_anthropics && !envelope.is_error_object && numbers.iter().any(|it| it == number)
            }
            Self::Type(name) => types.iter().any(|class| class == name),
            Self::Says(parts) => envelope.has_message(parts),
            Self::SaysOne(phrases) => envelope.has_message_with_one(phrases),
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

use Sign::{Name, Number, OneOfEach, Says, SaysOne};

const ROWS: &[Row] = &[
    // `DashScope`: the quotas of a plan, whose sentences end like that of a minute's limit.
    spent(Span::Credit, Says(&["free allocated quota exceeded"])),
    spent(Span::Hours, Says(&["hour allocated quota exceeded"])),
    spent(
        Span::Month,
        SaysOne(&["week allocated quota exceeded", "month allocated quota exceeded"]),
    ),
    // Limits of a minute that `DashScope` and Fireworks give the name of a spent account.
    row(Statuses::TooMany, Says(&["allocated quota exceeded"]), Kind::RateLimited),
    row(Statuses::TooMany, Says(&["error-code#token-limit"]), Kind::RateLimited),
    row(Statuses::TooMany, Says(&["usage limits. please try again later"]), Kind::RateLimited),
    // `OpenRouter`: a 402 that lasts until calls under way have ended.
    row(Statuses::Any, Name("in_flight_budget_exhausted"), Kind::RateLimited),
    row(
        Statuses::Only(&[402]),
        SaysOne(&["in-flight requests", "in_flight_budget_exhausted"]),
        Kind::RateLimited,
    ),
    // A filter may add that it cost nothing: "No credits were charged".
    row(Statuses::Final, SaysOne(FILTERED), Kind::ContentRefused),
    // A budget of thinking is no money.
    row(Statuses::Request, SaysOne(OF_ALL_DOCUMENTS), Kind::Unsupported),
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
    spent(Span::Credit, Name("InvalidSubscription")),
    // The owner's own bounds: on a model, at Volcengine; on spending, at Groq.
    spent(Span::Credit, Name("SetLimitExceeded")),
    spent(Span::Credit, Name("blocked_api_access")),
    spent(Span::Credit, Number("1113")),
    spent(Span::Credit, Number("1309")),
    // Held to be unfair use, until the owner asks for access.
    spent(Span::Credit, Number("1313")),
    spent_on(Statuses::Any, Span::Credit, Name("status_code 1008")),
    spent(Span::Credit, Name("NOT_ENOUGH_BALANCE")),
    spent(Span::Credit, OneOfEach(MONEY, SPENT)),
    spent(Span::Credit, SaysOne(NO_MONEY)),
    spent(Span::Credit, OneOfEach(&["budget"], OVERSPENT)),
    spent_on(Statuses::Only(&[402, 403]), Span::Credit, Says(&["budget limit exceeded"])),
    // Databricks: a limit of zero.
    spent(Span::Credit, Says(&["disabled due to", "rate limit"])),
    spent(Span::Credit, Says(&["exceeded your current quota", "platform.openai.com"])),
    spent(Span::Credit, Says(&["billing account", "is disabled"])),
    spent(
        Span::Credit,
        OneOfEach(&["free tier", "free trial"], &["exhausted", "ended", "expired"]),
    ),
    spent(Span::Key, Says(&["key limit exceeded"])),
    spent(Span::Key, Says(&["key", "total limit"])),
    row(Statuses::Any, Says(&["inputs", "max_new_tokens", "must be <="]), Kind::TooLarge),
    // Not a context that is too small: the bound on the answer is too large.
    row(Statuses::Request, OneOfEach(CAPS, CAP_EXCEEDS), Kind::OutputCapTooLarge),
    // The document does not fit.
    // A limit of a minute may be one of long contexts.
    row(Statuses::TooMany, OneOfEach(CONTEXTS, RATES), Kind::RateLimited),
    row(Statuses::Any, OneOfEach(CONTEXTS, &["exceed", "过长", "超出"]), Kind::TooLarge),
    row(Statuses::Only(&[400]), Name("string_too_long"), Kind::TooLarge),
    row(Statuses::Any, Name("max_tokens_per_request"), Kind::TooLarge),
    row(Statuses::Any, Name("tokens_limit_reached"), Kind::TooLarge),
    row(Statuses::Request, Number("1261"), Kind::TooLarge),
    row(Statuses::Any, OneOfEach(TEXTS, &["string too long"]), Kind::TooLarge),
    row(Statuses::Any, Name("string_above_max_length"), Kind::InvalidRequest),
    row(Statuses::Any, SaysOne(TOO_LONG), Kind::TooLarge),
    row(Statuses::Any, Says(&["n_keep", "n_ctx"]), Kind::TooLarge),
    row(Statuses::Request, Says(&["'body'", "length less than or equal"]), Kind::TooLarge),
    row(Statuses::Request, Says(&["a maximum of", "pages"]), Kind::TooLarge),
    row(Statuses::Any, Says(&["inputs", "must have less than", "tokens"]), Kind::TooLarge),
    // With a 429, "too many tokens" means those of a minute.
    row(Statuses::Request, OneOfEach(LENGTHS, EXCEEDS), Kind::TooLarge),
    row(Statuses::Request, Says(&["reduce the length of"]), Kind::TooLarge),
    // Longer limits; after money, whose messages contain "monthly" as well.
    spent(Span::Hours, Number("1308")),
    spent(Span::Hours, Name("usage_limit_reached")),
    spent_on(Statuses::Any, Span::Hours, Name("status_code 2056")),
    spent(
        Span::Hours,
        OneOfEach(
            &["hour usage", "hourly usage", "session usage", "for 5 hour"],
            &["limit", "quota"],
        ),
    ),
    spent(Span::Hours, Says(&["hour limit"])),
    spent(Span::Day, Number("1304")),
    spent_on(Statuses::TooMany, Span::Day, SaysOne(DAILY)),
    spent(Span::Day, OneOfEach(&["daily"], LIMITS)),
    spent_on(Statuses::TooMany, Span::Day, OneOfEach(&[" tpd ", " rpd "], LIMITS)),
    spent(Span::Month, Number("1310")),
    spent(Span::Month, Name("EXCEED_TOKEN_QUOTA_LIMIT")),
    spent(Span::Month, Says(&["out of", "quota"])),
    spent(Span::Month, Says(&["quota is not enough"])),
    spent(Span::Month, Says(&["quota", "used up"])),
    // A limit that refills soon is a 429.
    spent_on(
        Statuses::Only(&[403]),
        Span::Month,
        OneOfEach(&["quota"], &["exceed", "reached", "exhausted"]),
    ),
    spent_on(Statuses::Only(&[403]), Span::Month, Says(&["used all your"])),
    spent_on(
        Statuses::TooMany,
        Span::Month,
        SaysOne(&["/ month", "/month", "per month", "per week", "weekly", "本月", "每月"]),
    ),
    spent(Span::Month, OneOfEach(&["monthly", "weekly"], LIMITS)),
    spent(Span::Month, OneOfEach(PLANS, REACHED)),
    // Some send a limit that refills as a refusal of the request or the key.
    row(Statuses::Only(&[400, 403]), OneOfEach(RATES, RATES), Kind::RateLimited),
    // Volcengine: a limit shared by all customers, not ours.
    row(Statuses::Any, Name("ServerOverloaded"), Kind::Overloaded),
    // Withheld answers.
    row(Statuses::Any, Name("content_filter"), Kind::ContentRefused),
    row(Statuses::Any, Name("data_inspection_failed"), Kind::ContentRefused),
    row(Statuses::Any, Name("DataInspectionFailed"), Kind::ContentRefused),
    row(Statuses::Any, Name("ResponsibleAIPolicyViolation"), Kind::ContentRefused),
    row(Statuses::Request, Number("1301"), Kind::ContentRefused),
    row(Statuses::Final, OneOfEach(SENSITIVE, &["detected", "contain"]), Kind::ContentRefused),
    row(Statuses::Request, Name("invalid_prompt"), Kind::ContentRefused),
    row(Statuses::Request, Name("refusal"), Kind::ContentRefused),
    row(Statuses::Any, Name("content_policy_violation"), Kind::ContentRefused),
    row(Statuses::Any, Name("moderation_blocked"), Kind::ContentRefused),
    row(Statuses::Final, Says(&["guardrail", "violat"]), Kind::ContentRefused),
    row(Statuses::Final, Says(&["guardrail", "intervened"]), Kind::ContentRefused),
    row(
        Statuses::Request,
        SaysOne(&["敏感", "违规", "审核不通过", "审核未通过"]),
        Kind::ContentRefused,
    ),
    row(Statuses::Final, OneOfEach(CONTENT, WITHHELD), Kind::ContentRefused),
    // The key, in a request's refusal.
    row(
        Statuses::Request,
        OneOfEach(
            &["api key", "access token", "authorization header"],
            &["incorrect", "invalid", "not valid", "expired"],
        ),
        Kind::Unauthorized,
    ),
    row(Statuses::Request, Says(&["no permission to access"]), Kind::Unauthorized),
    row(Statuses::Request, Name("organization_restricted"), Kind::Unauthorized),
    row(Statuses::Request, Says(&["organization has been disabled"]), Kind::Unauthorized),
    // An account that is inactive or locked.
    row(Statuses::Limit, Number("1110"), Kind::Unauthorized),
    row(Statuses::Limit, Number("1112"), Kind::Unauthorized),
    row(Statuses::Limit, Number("1121"), Kind::Unauthorized),
    row(Statuses::Any, Name("status_code 1004"), Kind::Unauthorized),
    row(Statuses::Any, Name("status_code 2049"), Kind::Unauthorized),
    // `MiniMax`: requests, tokens, connections, growth.
    row(Statuses::Any, Name("status_code 1002"), Kind::RateLimited),
    row(Statuses::Any, Name("status_code 1039"), Kind::RateLimited),
    row(Statuses::Any, Name("status_code 1041"), Kind::RateLimited),
    row(Statuses::Any, Name("status_code 2045"), Kind::RateLimited),
    row(Statuses::Any, Name("status_code 2013"), Kind::InvalidRequest),
    // The model wrote no JSON: another attempt may.
    row(Statuses::Any, Name("json_validate_failed"), Kind::InvalidOutput),
    row(Statuses::Any, Name("output_parse_failed"), Kind::InvalidOutput),
    row(Statuses::Any, Name("tool_use_failed"), Kind::Transient),
    // NVIDIA: the machines behind the model are faulty.
    row(Statuses::Request, Says(&["degraded function"]), Kind::Transient),
    // Shared by every document of the batch: the model's name, …
    row(Statuses::Request, Name("DeploymentNotFound"), Kind::UnknownModel),
    row(Statuses::Request, Name("model_not_available"), Kind::UnknownModel),
    row(Statuses::Request, Number("1211"), Kind::UnknownModel),
    row(Statuses::Any, Number("1311"), Kind::UnknownModel),
    row(Statuses::Any, Name("status_code 2061"), Kind::UnknownModel),
    row(Statuses::Request, Name("invalid_model"), Kind::UnknownModel),
    row(Statuses::Request, Name("model_decommissioned"), Kind::UnknownModel),
    row(Statuses::Request, Name("model_not_supported"), Kind::UnknownModel),
    // Groq: the organization has to accept the terms of the model.
    row(Statuses::Request, Name("model_terms_required"), Kind::UnknownModel),
    row(Statuses::Any, SaysOne(NOT_IN_PLAN), Kind::UnknownModel),
    row(Statuses::Request, SaysOne(NO_MODEL), Kind::UnknownModel),
    // … the features that the batch uses, …
    row(Statuses::Request, Says(&["modality is not enabled"]), Kind::InvalidRequest),
    row(Statuses::Request, Name("unsupported_parameter"), Kind::Unsupported),
    row(Statuses::Request, Name("unsupported_value"), Kind::Unsupported),
    row(Statuses::Request, Name("unknown_parameter"), Kind::Unsupported),
    row(Statuses::Request, Name("OperationNotSupported"), Kind::Unsupported),
    row(Statuses::Request, OneOfEach(DOCUMENTS, &["supported values are"]), Kind::InvalidRequest),
    row(Statuses::Request, SaysOne(NO_FEATURE), Kind::Unsupported),
    // LM Studio, with a 200; Cloudflare.
    row(
        Statuses::Any,
        SaysOne(&["unexpected endpoint or method", "no route for that uri"]),
        Kind::Unsupported,
    ),
    row(Statuses::Request, Says(&["not supported", "this model"]), Kind::Unsupported),
    row(Statuses::Request, OneOfEach(SCHEMAS, BAD_SCHEMA), Kind::Unsupported),
    // … not what this document is, …
    row(Statuses::Request, OneOfEach(DOCUMENTS, NOT_TAKEN), Kind::InvalidRequest),
    // … and the model in other words.
    row(Statuses::Request, OneOfEach(&["model "], GONE), Kind::UnknownModel),
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

/// The status that an error in a success would have as a refusal. Without one of its own, its words
/// decide.
pub(crate) fn status_in_success(envelope: &Envelope) -> u16 {
    envelope.status.unwrap_or_else(|| match find(400, envelope, None) {
        Some((Kind::RateLimited, _)) => 429,
        Some(_) => 400,
        None => 500,
    })
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
            let at_once = envelope.has_one_of_each(AT_ONCE, AT_ONCE);
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
            SaysOne(phrases) => envelope.messages.push(phrases[0].to_owned()),
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
            // Bedrock, and Anthropic.
            (400, r#"{"message":"The model returned the following errors: too many total text bytes: 9437184 > 9000000"}"#, large),
            (400, r#"{"message":"1 validation error detected: Value at 'body' failed to satisfy constraint: Member must have length less than or equal to 25000000"}"#, large),
            (400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"A maximum of 600 PDF pages may be provided."}}"#, large),
            // OpenRouter: a filter's answer speaks of money.
            (403, r#"{"error":{"message":"m requires moderation on OpenAI. Your input was flagged for \"violence\". No credits were charged.","code":403}}"#, withheld),
            (400, r#"{"error":{"message":"litellm.ContentPolicyViolationError: OpenAIException - Your request was rejected."}}"#, withheld),
            (400, r#"{"error":{"code":"InputTextRiskDetection","message":"The request failed because the input text may contain sensitive information."}}"#, withheld),
            (429, r#"{"error":{"code":"QuotaExceeded","message":"You have exhausted your free trial quota for the model.","type":"TooManyRequests"}}"#, spent),
            (429, r#"{"error":{"code":429,"message":"Quota exceeded for aiplatform.googleapis.com/global_generate_content_requests_per_day_per_project_per_base_model with base model: m.","status":"RESOURCE_EXHAUSTED"}}"#, spent),
            (429, r#"{"error":{"code":"ServerOverloaded","message":"The service is currently unable to handle additional requests.","type":"TooManyRequests"}}"#, Kind::Overloaded),
            (400, r#"{"error":{"code":"model_terms_required","message":"The model `m` requires terms acceptance."}}"#, Kind::UnknownModel),
            (400, r#"{"error":{"code":400,"message":"model 'm' not found","type":"invalid_request_error"}}"#, Kind::UnknownModel),
            (400, r#"{"error":{"code":"1210","message":"max_tokens参数非法：限制数值范围[1,131072]"}}"#, Kind::OutputCapTooLarge),
            (400, r#"{"error":{"message":"The model m has been deprecated and is no longer available"}}"#, Kind::UnknownModel),
            (400, r#"{"code":20012,"message":"Model does not exist. Please check it carefully.","data":null}"#, Kind::UnknownModel),
            (400, r#"{"message":"This model doesn't support the stopSequences field. Remove stopSequences and try again."}"#, Kind::Unsupported),
            (400, r#"{"code":"Client specified an invalid argument","error":"Model m does not support parameter presencePenalty."}"#, Kind::Unsupported),
            (400, r#"{"error":{"message":"The provided JSON schema contains features not supported by xgrammar."}}"#, Kind::Unsupported),
            (400, r#"{"error":{"message":"\"m:4b\" does not support thinking"}}"#, Kind::Unsupported),
            (400, r#"{"error":{"code":"BadRequest","message":"The chatCompletion operation does not work with the specified model, m."}}"#, Kind::Unsupported),
            // Fireworks: too many calls.
            (429, r#"{"error":"Too Many Requests","message":"You have exceeded your usage limits. Please try again later or contact Fireworks to explore dedicated capacity."}"#, Kind::RateLimited),
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
            // Money, in other words.
            (403, r#"{"message":"Model access is denied due to INVALID_PAYMENT_INSTRUMENT:A valid payment instrument must be provided."}"#, spent),
            (403, r#"{"error":{"message":"The billing account for the owning project is disabled in state absent"}}"#, spent),
            (403, r#"{"error":{"message":"The project to be billed is associated with a closed billing account."}}"#, spent),
            (403, r#"{"error":{"message":"AI Gateway requires a valid credit card on file to service requests."}}"#, spent),
            (401, r#"{"error":{"message":"Authentication Error, ExceededBudget: User=u over budget. Spend=1.2, Budget=1.0","code":"auth_error"}}"#, spent),
            (429, r#"{"error":{"message":"No deployments available - crossed budget: Exceeded budget for deployment m","code":"429"}}"#, spent),
            (429, r#"{"error":{"message":"You are out of credits."}}"#, spent),
            (429, r#"{"error":{"message":"Your organization has no remaining credits."}}"#, spent),
            (400, r#"{"error":{"message":"You're out of extra usage. Add more at claude.ai/settings/usage"}}"#, spent),
            (400, r#"{"error":{"code":"FailedOperation.ResourcePackExhausted","message":"资源包余量已用尽"}}"#, spent),
            // A plan's limits, and the owner's.
            (403, r#"{"error":{"type":"permission_error","message":"You've reached your usage limit for this billing cycle."}}"#, spent),
            (403, r#"{"error":{"type":"access_terminated_error","message":"You've reached your weekly (7-day) usage limit."}}"#, spent),
            (403, r#"{"message":"Daily request limit reached for this key"}"#, spent),
            (400, r#"{"error":{"code":"blocked_api_access","message":"API access is blocked since a specified spend alert threshold was met."}}"#, spent),
            (403, r#"{"code":"spend_limit_exceeded","detail":"No more."}"#, spent),
            (403, r#"{"error":{"message":"You have reached your spending limit."}}"#, spent),
            (403, r#"{"errors":[{"code":"token_quota_reached","message":"x"}]}"#, spent),
            (403, r#"{"error_code":"ModelArts.81022","error_msg":"Your Token plan quota has been exhausted."}"#, spent),
            (429, r#"{"code":"EXCEED_TOKEN_QUOTA_LIMIT","message":"x"}"#, spent),
            (200, r#"{"base_resp":{"status_code":2045,"status_msg":"request frequency growth limit"}}"#, Kind::RateLimited),
            // A plan without the model.
            (429, r#"{"error":{"code":"1311","message":"x"}}"#, Kind::UnknownModel),
            (500, r#"{"error":{"type":"api_error","message":"your current token plan not support model, m (2061)"}}"#, Kind::UnknownModel),
            (400, r#"{"detail":"Function id '87ea': DEGRADED function cannot be invoked"}"#, Kind::Transient),
            (400, r#"{"error":{"message":"max_tokens must be at least 1, got -7584.","code":400}}"#, large),
            (500, r#"{"error":"Cannot process new request: Prompt length (5056) exceeds maximum sequence length (2048)"}"#, large),
            (400, r#"{"status":{"code":"40003","message":"Text too long"},"result":null}"#, large),
            (400, r#"{"error":{"message":"number of input tokens must be no more than 7400, got 8500"}}"#, large),
            (400, r#"{"error":{"message":"token数量超过上限 (code: 10907)"}}"#, large),
            (400, r#"{"error_code":"BAD_REQUEST","message":"{\"external_model_error\":{\"error\":{\"message\":\"x\",\"code\":\"context_length_exceeded\"}}}"}"#, large),
            (400, r#"{"error":{"message":"Invalid 'messages[1].content': string too long.","code":"string_above_max_length"}}"#, large),
            (400, r#"{"error":{"message":"Invalid 'prompt_cache_key': string too long.","code":"string_above_max_length"}}"#, Kind::InvalidRequest),
            (400, r#"{"error":{"message":"Blocked entity detected: EMAIL_ADDRESS by Guardrail: presidio."}}"#, withheld),
            (400, r#"{"error":{"message":"{'error': 'Rejected message. This is a prompt injection attack.'}"}}"#, withheld),
            (400, r#"{"error":{"message":"This request has been flagged for potentially high-risk cyber activity."}}"#, withheld),
            (400, r#"{"error":{"code":"image_url_unsafe","message":"the content of image_url.url is unsafe"}}"#, withheld),
            (400, r#"{"error":{"code":"sensitive_words_detected","message":"x"}}"#, withheld),
            (400, r#"{"error":{"message":"input contains sensitive words"}}"#, withheld),
            (400, r#"{"error":{"message":"System detected potentially unsafe or sensitive content in input"}}"#, withheld),
            (400, r#"{"error":{"message":"The request was refused.","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#, withheld),
            (400, r#"{"error":{"message":"输入内容审核不通过，涉嫌违规"}}"#, withheld),
            (400, r#"{"status_code":400,"error":{"type":"content_policy_violation","message":"Denied."}}"#, withheld),
            (400, r#"{"error":{"message":"prompt pattern is blocked"}}"#, withheld),
            (400, r#"{"error":{"message":"Your prompt may violate our usage policy."}}"#, withheld),
            (400, r#"{"error":{"message":"The request is blocked by guardrail policy."}}"#, withheld),
            (400, r#"{"error":{"message":"This organization has been disabled."}}"#, Kind::Unauthorized),
            (424, r#"{"error":[{"code":2017,"message":"Response blocked due to security configurations"}]}"#, withheld),
            (403, r#"{"error":{"message":"Request blocked: prompt injection detected"}}"#, withheld),
            (400, r#"{"error":{"message":"Blocked by Model Armor Floor Setting: The prompt violated Responsible AI settings."}}"#, withheld),
            (400, r#"{"error":{"message":"{'error': 'Violated content safety policy'}"}}"#, withheld),
            (400, r#"{"error":{"code":"OperationDenied.TextIllegalDetected","message":"x"}}"#, withheld),
            (400, r#"{"error":{"message":"输入内容含有违规信息"}}"#, withheld),
            // A locked account, and a key in a form that the gateway does not take.
            (429, r#"{"error":{"code":"1112","message":"x"}}"#, Kind::Unauthorized),
            (400, r#"{"success":false,"errors":[{"code":6003,"message":"Invalid request headers","error_chain":[{"code":6111,"message":"Invalid format for Authorization header"}]}]}"#, Kind::Unauthorized),
            // Limits that refill, with other statuses.
            (403, r#"{"message":"You have exceeded a secondary rate limit."}"#, Kind::RateLimited),
            (403, r#"{"error":{"errors":[{"reason":"userRateLimitExceeded","message":"User Rate Limit Exceeded"}],"code":403}}"#, Kind::RateLimited),
            (400, r#"{"message":"all requests were throttled by remote service"}"#, Kind::RateLimited),
            // Models that are unknown or gone.
            (400, r#"{"error":{"code":"model_decommissioned","message":"x"}}"#, Kind::UnknownModel),
            (400, r#"{"error":{"code":"model_not_supported","message":"x"}}"#, Kind::UnknownModel),
            (400, r#"{"error":{"type":"invalid_model","message":"x","code":400}}"#, Kind::UnknownModel),
            (400, r#"{"error":{"message":"Invalid model name passed in model=m","code":"400"}}"#, Kind::UnknownModel),
            (400, r#"{"error":{"message":"invalid model ID"}}"#, Kind::UnknownModel),
            // The bound of the answer.
            (400, r#"{"error":{"message":"max_tokens=131073 cannot be greater than max_model_len=max_total_tokens=8192."}}"#, Kind::OutputCapTooLarge),
            (400, r#"{"error":{"message":"Invalid 'max_output_tokens': integer above maximum value.","code":"integer_above_max_value"}}"#, Kind::OutputCapTooLarge),
            (400, r#"{"error":{"message":"the max_completion_tokens should be [2, 2048]"}}"#, Kind::OutputCapTooLarge),
            (422, r#"{"detail":[{"type":"less_than_equal","loc":["body","max_tokens"],"msg":"Input should be less than or equal to 4096"}]}"#, Kind::OutputCapTooLarge),
            // The model, in other words.
            (400, r#"{"error":{"message":"The supported API model names are a or b, but you passed m.","type":"invalid_request_error"}}"#, Kind::UnknownModel),
            (400, r#"{"detail":"The 'm' model is not supported when using Codex with a ChatGPT account."}"#, Kind::UnknownModel),
            (400, r#"{"error":{"message":"Model Id [m] not found"}}"#, Kind::UnknownModel),
            (400, r#"{"error":{"code":"model_is_deactivated","message":"x"}}"#, Kind::UnknownModel),
            // What every document of the batch shares.
            (400, r#"{"error":{"message":"Developer instruction is not enabled for models/gemma-3-27b-it"}}"#, Kind::Unsupported),
            (400, r#"{"error":{"message":"This response_format type is unavailable now"}}"#, Kind::Unsupported),
            (400, r#"{"error":{"message":"The specified schema produces a constraint that has too many states for serving."}}"#, Kind::Unsupported),
            (422, r#"{"detail":[{"type":"extra_forbidden","loc":["body","foo"],"msg":"Extra inputs are not permitted"}]}"#, Kind::Unsupported),
            (200, r#"{"error":"Unexpected endpoint or method. (POST /chat/completions)"}"#, Kind::Unsupported),
            // What this document is.
            (400, r#"{"error":{"message":"Image input modality is not enabled for models/gemma-3n-e4b-it"}}"#, Kind::InvalidRequest),
            (400, r#"{"error":{"message":"The file type application/x is not supported by the model m"}}"#, Kind::InvalidRequest),
            (400, r#"{"error":{"message":"image.source.media_type: x. Supported values are image/png"}}"#, Kind::InvalidRequest),
            // Limits of a minute that long contexts have.
            (429, r#"{"error":{"message":"This request would exceed the rate limit for prompts with a long context window."}}"#, Kind::RateLimited),
            (429, r#"{"error":{"message":"Rate limit for a context length above 200k exceeded. Please retry in 7s."}}"#, Kind::RateLimited),
            // A budget of thinking is no money.
            (400, r#"{"error":{"message":"The thinking_budget exceeded its maximum of 24576 for model m."}}"#, Kind::Unsupported),
            (400, r#"{"error":{"message":"budget_tokens limit exceeded: must be less than max_tokens"}}"#, Kind::Unsupported),
            // Texts that a call for vectors takes together.
            (400, r#"{"error":{"message":"Requested 308527 tokens, max 300000 tokens per request","code":"max_tokens_per_request"}}"#, large),
            (400, r#"{"detail":"The max allowed tokens per submitted batch is 120000. Your batch has 150000 tokens."}"#, large),
            (400, r#"{"error":"the maximum supported sequence length is just 8192!"}"#, large),
            (400, r#"{"error":{"message":"Invalid schema for response_format 'a': property names exceed 120000 characters."}}"#, Kind::Unsupported),
            (400, r#"{"error":{"message":"Unknown parameter: 'x'.","code":"unknown_parameter"}}"#, Kind::Unsupported),
            (400, r#"{"error":{"message":"x","code":"OperationNotSupported"}}"#, Kind::Unsupported),
            // The reasoning's bound, which all documents share.
            (400, r#"{"error":{"message":"Unable to submit request because thinking_budget is out of range; supported values are integers from 1 to 24576."}}"#, Kind::Unsupported),
        ];
        for (status, body, kind) in cases {
            let found = find(status, &Envelope::read(body.as_bytes()), None);
            assert_eq!(found.map(|(kind, _)| kind), Some(kind), "{status} {body}");
        }
        // The same words with another meaning: the status decides, or the vendor's names.
        for (status, message) in [
            (429, "All upstreams in load balancer pool are out of capacity, please retry"),
            (429, "The load balancer has exhausted its upstreams"),
            (
                429,
                "Online prediction request quota exceeded for m. Please try again later with backoff.",
            ),
            (
                429,
                "VertexAIException - {'error': {'message': 'You exceeded your current quota, please check your plan and billing details.', 'status': 'RESOURCE_EXHAUSTED'}}",
            ),
            (400, "document field 'payment' is out of range in tool schema"),
            (400, "'weekly' is none of the values, which are limited to 'once'"),
            (400, "messages[0].content: schema constraint violated: must be string"),
            (403, "The model `llama-prompt-guard-2-86m` is blocked at the project level."),
            (403, "Content-Type not allowed: prohibited"),
            (403, "Your account was flagged for potential abuse."),
            (429, "Rate limit exceeded: TPM budget limit exceeded. Try again in 2 seconds."),
            (429, "Token budget limit exceeded for this minute, try again in 20s"),
            (400, "Could not parse response_format output: the output is invalid JSON"),
            (400, "The service returned an invalid structured output, please retry."),
            (429, "并发数超过上限"),
            (429, "Rate limit triggered: too many prompt tokens per minute"),
            (503, "Circuit breaker triggered while checking content"),
            (503, "The safety system is temporarily unavailable"),
        ] {
            let body = serde_json::json!({"error": {"message": message}}).to_string();
            assert_eq!(find(status, &Envelope::read(body.as_bytes()), None), None, "{message}");
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
        // Zhipu in Anthropic's form.
        for error in [
            r#"{"type":"1308","message":"m"}"#,
            r#"{"type":"rate_limit_error","code":"1308","message":"m"}"#,
        ] {
            let body = format!(r#"{{"type":"error","error":{error}}}"#);
            let found = find(429, &Envelope::read(body.as_bytes()), None);
            assert_eq!(found, Some((Kind::QuotaExhausted, Some(Span::Hours))), "{error}");
        }
        let mistral = br#"{"object":"error","type":"rate_limited","code":"1308","message":"m"}"#;
        assert_eq!(find(429, &Envelope::read(mistral), None), None);
    }
}
