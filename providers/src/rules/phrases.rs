//! Phrases of refusals, in lower case: what several rows of the table look for.

/// Limits that refill, in a message or a name.
pub(super) const RATES: &[&str] = &[
    "rate limit",
    "too many requests",
    " qps",
    "request limit reached",
    "throttled",
    "过于频繁",
    "频率超限",
];

/// What a request has in tokens.
pub(super) const LENGTHS: &[&str] =
    &["token", "prompt", "input length", "input is", "characters", "长度"];

/// What a document does not fit into, in a message or a name.
pub(super) const CONTEXTS: &[&str] =
    &["context length", "context size", "context window", "上下文"];

/// The document does not fit, in one phrase.
pub(super) const TOO_LONG: &[&str] = &[
    "contextwindowexceeded",
    "context length",
    "context limit",
    "context size",
    "context window",
    "exceeds maximum input length",
    "exceeds maximum sequence length",
    "input is too long",
    "longer than the maximum model length",
    "maximum prompt length",
    "payload size exceeds",
    "prompt is too long",
    "range of input length",
    "request entity too large",
    "text too long",
    "required for long context",
    "supported sequence length",
    "too large to process",
    "too many total text bytes",
    // vLLM: a bound on the answer that is computed, because the prompt leaves no room.
    "tokens must be at least 1, got -",
    "超长",
];

/// Texts of a request that may be too long, as messages name them.
pub(super) const TEXTS: &[&str] =
    &["'messages", "'input", "'instructions", "'contents", "'prompt'"];

/// A length is above its bound.
pub(super) const EXCEEDS: &[&str] = &[
    "exceed",
    "too long",
    "too many",
    "longer than",
    "larger than",
    "max allowed",
    "more than max",
    "must be less than",
    "must have less than",
    "must be no more than",
    "must be <=",
    "too large",
    "only supports up to",
    "is beyond the limit",
    "超过上限",
];

/// What bounds an answer.
pub(super) const CAPS: &[&str] = &[
    "max_tokens",
    "max tokens must",
    "max_completion_tokens",
    "max_new_tokens",
    "max_output_tokens",
    "maxoutputtokens",
    "maxtokens",
    "maximum tokens you requested",
];

/// A bound that the model does not take.
pub(super) const CAP_EXCEEDS: &[&str] = &[
    "above maximum",
    "cannot be greater than",
    "greater than the max",
    "in range",
    "in the range",
    "is not less or equal",
    "is too large",
    "max allowed",
    "must be less than",
    "must be <=",
    "must be at most",
    "must be between",
    "must be no more than",
    "less than or equal",
    "maximum allowed",
    "supported range",
    "range of",
    "should be [",
    "should be in [",
    "tokens you requested exceed",
    "参数非法",
];

/// What pays for calls.
pub(super) const MONEY: &[&str] = &[
    // Not "balancer".
    "balance ",
    "bill ",
    "billing",
    "credit",
    "fund",
    "invoice",
    "package",
    "payment",
    "prepaid",
    "余额",
    "额度",
    "资源包",
];

/// There is no money.
pub(super) const SPENT: &[&str] = &[
    "insufficient",
    "not enough",
    // Not Google's "RESOURCE_EXHAUSTED", which may be a limit of a minute.
    " exhausted",
    "depleted",
    "too low",
    "overdue",
    "past due",
    "expired",
    "suspended",
    "to be enabled",
    "billing disabled",
    "不足",
    "用尽",
];

/// There is no money, in one phrase. "Out of" and "budget" mean something else in other phrases:
/// "`thinking_budget` is out of range".
pub(super) const NO_MONEY: &[&str] = &[
    "account balance is $0",
    "any credits",
    "budget exceeded",
    "budget exhausted",
    "budget has been exceeded",
    "can only afford",
    "closed billing account",
    "credit limit exceeded",
    "crossed budget",
    "enter a payment method",
    "exceeded budget",
    "no credit",
    "no remaining credit",
    "out of balance",
    "out of budget",
    "out of credit",
    "out of extra usage",
    "out of fund",
    "out of money",
    "over budget",
    "in arrears",
    "insufficient quota",
    "payment required",
    "requires more credits",
    "used all available credits",
    "valid credit card",
    "valid payment instrument",
    "欠费",
];

/// More than a budget of money is spent. A budget may also be one of thinking, or of the context.
pub(super) const OVERSPENT: &[&str] = &["current spend", "exceeded its", "exceeded their"];

/// Limits of a plan, or set by the account's owner. A "quota" may be one of a minute.
pub(super) const PLANS: &[&str] = &["usage limit", "spend limit", "spending limit", "spending cap"];

/// Such a limit is reached.
pub(super) const REACHED: &[&str] = &["reached", "exceed", "hit your", "hit the"];

/// A filter withheld the answer, in one phrase.
pub(super) const FILTERED: &[&str] = &[
    "blocked input",
    "blocked output",
    "content exists risk",
    "content filter",
    "content management policy",
    "content policy",
    "contentpolicyviolation",
    "flagged by moderation",
    "inappropriate content",
    "new_sensitive",
    "prompt injection",
    "response blocked",
    // Not "your account was flagged".
    "content was flagged",
    "input was flagged",
    "prompt was flagged",
    "request was flagged",
    "request has been flagged",
    "it was flagged",
    "safety system",
];

/// What a filter finds.
pub(super) const SENSITIVE: &[&str] = &[
    "sensitivecontent",
    "sensitive content",
    "sensitive information",
    "sensitive word",
    "illegaldetected",
    "harmful content",
    "unsafe content",
];

/// Limits of a day, in the message of a 429.
pub(super) const DAILY: &[&str] = &[
    "per day",
    "per-day",
    "per_day",
    "daily",
    "/ day",
    "/day",
    "今日",
    "每日",
    "per 86400s",
    "24 hours",
    "requests for today",
];

/// A longer limit; not "limited to".
pub(super) const LIMITS: &[&str] =
    &["limit ", "limits ", "quota", "cap ", "allocation", "allowance"];

/// Parameters that all documents of a batch share: the reasoning's bound, and the schema.
pub(super) const OF_ALL_DOCUMENTS: &[&str] =
    &["thinking_budget", "thinking budget", "budget_tokens", "invalid schema for response_format"];

/// What a filter looks at, or the filter.
pub(super) const CONTENT: &[&str] =
    &["content", "prompt", "guardrail", "moderation", "safety", "usage policy", "usage policies"];

/// A filter has found something. "Content-Type", "prompt-guard" and "constraint violated" are no
/// filter's words.
pub(super) const WITHHELD: &[&str] = &[
    "violate ",
    "violates",
    "violating",
    "violation",
    "violated content",
    "violated our",
    "violated the",
    "content is blocked",
    "content was blocked",
    "content has been blocked",
    "content blocked",
    "prompt is blocked",
    "prompt was blocked",
    "prompt has been blocked",
    "prompt blocked",
    "pattern is blocked",
    "moderation blocked",
    "guardrail blocked",
    "blocked by content",
    "blocked by guardrail",
    "blocked by the guardrail",
    "blocked by model armor",
    "blocked by moderation",
    "blocked by safety",
    "blocked due to",
    "entity detected",
    "censor",
    "flagged by",
    "content has been flagged",
    "prompt has been flagged",
    "prohibited content",
    "prohibited_content",
    "contains prohibited",
    "is prohibited",
    "inappropriate",
    "intervened",
    "is unsafe",
    "triggered",
    "safety check",
];

/// The account's plan lacks the model.
pub(super) const NOT_IN_PLAN: &[&str] =
    &["plan does not yet include access to", "plan not support model"];

/// The model's name is unknown, in one phrase.
pub(super) const NO_MODEL: &[&str] = &[
    "invalid model:",
    "invalid model id",
    "invalid model name",
    "model identifier is invalid",
    "model not exist",
    "model not found",
    "no such model",
    "non-serverless model",
    "not a valid model",
    "unknown model",
    "模型不存在",
];

/// A model is unknown, withdrawn, or none of this account or address.
pub(super) const GONE: &[&str] = &[
    "cannot find",
    "could not find",
    "deactivated",
    "decommissioned",
    "does not exist",
    "is deprecated",
    "is not allowed",
    "is not available",
    "is not supported",
    "has been deprecated",
    "has been retired",
    "no longer available",
    "no model named",
    "not a chat model",
    "not a supported model",
    "not found",
    "not have access",
    "not loaded",
    "only supported in",
    "supported api model names",
    "unsupported model",
];

/// What a document is, as far as the model cares.
pub(super) const DOCUMENTS: &[&str] =
    &["audio", "document", "file", "image", "media", "mime", "pdf"];

/// It is not taken.
pub(super) const NOT_TAKEN: &[&str] = &[
    "cannot find",
    "could not find",
    "not available",
    "not found",
    "not supported",
    "unsupported",
];

/// The form of an answer, which all documents of a batch share.
pub(super) const SCHEMAS: &[&str] = &[
    "compiled grammar",
    "grammar error",
    "json schema",
    "json_schema",
    "output_config",
    "response format",
    "response_format",
    "response_schema",
    "schema in generationconfig",
    "specified schema",
    "structured output",
];

/// It cannot be had.
pub(super) const BAD_SCHEMA: &[&str] = &[
    "exceeds",
    "missing field",
    "must be",
    "must contain",
    "not supported",
    "too complex",
    "too large",
    "too many",
    "unavailable",
    "unimplemented",
    "unsupported",
];

/// The model lacks a feature that all documents of a batch use, in one phrase.
pub(super) const NO_FEATURE: &[&str] = &[
    "cannot both be specified",
    "cannot find field",
    "does not support parameter",
    "does not support thinking",
    "does not work with the specified model",
    "extra inputs are not permitted",
    "extraneous key",
    "features not supported by",
    "is deprecated for this model",
    "is mandatory for this endpoint",
    "is not enabled for model",
    "method not allowed",
    "model does not support",
    "model doesn't support",
    "must be set to false",
    "on-demand throughput",
    "only works in thinking mode",
    "supported values are",
    "unrecognized request argument",
    "unsupported parameter",
];

/// Signs of a limit at once.
pub(super) const AT_ONCE: &[&str] =
    &["concurren", "too many connections", "parallel", "in flight", "in-flight", "并发"];
