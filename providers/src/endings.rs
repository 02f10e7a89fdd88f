//! Vendors' words for the end of an answer: a table for each API, with its sources.

use crate::error::Kind;

/// The meaning of a vendor's word for the end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The answer is whole.
    Complete,
    /// The answer is whole: a stop sequence was reached.
    Sequence,
    /// The answer was cut at `max_output_tokens`.
    Cut,
    /// The model or the provider withheld the answer.
    Refused,
    /// The model asked for a tool, although our requests offer none.
    ToolUse,
    /// There is no answer for another reason; the kind is the effect of a retry.
    Failed(Kind),
}

/// A vendor's word, its meaning, and the page that documents it.
pub(crate) type Row = (&'static str, Ending, &'static str);

const STOP_REASONS: &str =
    "https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons";
const CONVERSE: &str =
    "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html";
const GEMINI_API: &str = "https://ai.google.dev/api/generate-content#FinishReason";
const VERTEX_API: &str = "https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/GenerateContentResponse";
const GEMINI_SDK: &str =
    "https://github.com/googleapis/python-genai/blob/main/google/genai/types.py";
const CHAT: &str = "https://platform.openai.com/docs/api-reference/chat/object";
const OPENROUTER: &str = "https://openrouter.ai/docs/api/reference/overview";
const MISTRAL: &str = "https://docs.mistral.ai/api/";
const DEEPSEEK: &str = "https://api-docs.deepseek.com/api/create-chat-completion";
const TOGETHER: &str = "https://github.com/togethercomputer/openapi/blob/main/openapi.yaml";
/// `FINISH_REASON_STRINGS`, "part of the external API".
const VLLM: &str = "https://github.com/vllm-project/vllm/blob/main/vllm/v1/engine/__init__.py";
const TGI: &str =
    "https://github.com/huggingface/text-generation-inference/blob/main/docs/openapi.json";
const RESPONSE: &str = "https://platform.openai.com/docs/api-reference/responses/object";

/// `stop_reason`.
pub(crate) const ANTHROPIC: &[Row] = &[
    ("end_turn", Ending::Complete, STOP_REASONS),
    ("stop_sequence", Ending::Sequence, STOP_REASONS),
    ("max_tokens", Ending::Cut, STOP_REASONS),
    ("refusal", Ending::Refused, STOP_REASONS),
    ("tool_use", Ending::ToolUse, STOP_REASONS),
    // A server tool's loop has reached its limit, and wants to be continued.
    ("pause_turn", Ending::ToolUse, STOP_REASONS),
    // More output tokens would not help: the context is full.
    ("model_context_window_exceeded", Ending::Failed(Kind::TooLarge), STOP_REASONS),
];

/// `stopReason`.
pub(crate) const BEDROCK: &[Row] = &[
    ("end_turn", Ending::Complete, CONVERSE),
    ("stop_sequence", Ending::Sequence, CONVERSE),
    ("max_tokens", Ending::Cut, CONVERSE),
    ("guardrail_intervened", Ending::Refused, CONVERSE),
    ("content_filtered", Ending::Refused, CONVERSE),
    ("tool_use", Ending::ToolUse, CONVERSE),
    ("malformed_tool_use", Ending::ToolUse, CONVERSE),
    ("malformed_model_output", Ending::Failed(Kind::Transient), CONVERSE),
    ("model_context_window_exceeded", Ending::Failed(Kind::TooLarge), CONVERSE),
    // Not a value of this vendor's, but Claude uses it elsewhere.
    ("refusal", Ending::Refused, STOP_REASONS),
];

/// `finishReason`.
pub(crate) const GEMINI: &[Row] = &[
    ("STOP", Ending::Complete, GEMINI_API),
    ("MAX_TOKENS", Ending::Cut, GEMINI_API),
    ("SAFETY", Ending::Refused, GEMINI_API),
    ("RECITATION", Ending::Refused, GEMINI_API),
    ("LANGUAGE", Ending::Refused, GEMINI_API),
    ("BLOCKLIST", Ending::Refused, GEMINI_API),
    ("PROHIBITED_CONTENT", Ending::Refused, GEMINI_API),
    ("SPII", Ending::Refused, GEMINI_API),
    ("ESCALATION", Ending::Refused, GEMINI_API),
    ("PUP_LIMITED_DISABLED", Ending::Refused, GEMINI_API),
    ("MODEL_ARMOR", Ending::Refused, VERTEX_API),
    ("IMAGE_SAFETY", Ending::Refused, GEMINI_API),
    ("IMAGE_PROHIBITED_CONTENT", Ending::Refused, GEMINI_API),
    ("IMAGE_RECITATION", Ending::Refused, GEMINI_API),
    ("MALFORMED_FUNCTION_CALL", Ending::ToolUse, GEMINI_API),
    ("UNEXPECTED_TOOL_CALL", Ending::ToolUse, GEMINI_API),
    ("TOO_MANY_TOOL_CALLS", Ending::ToolUse, GEMINI_API),
    ("OTHER", Ending::Failed(Kind::Transient), GEMINI_API),
    ("MALFORMED_RESPONSE", Ending::Failed(Kind::Transient), GEMINI_API),
    ("MISSING_THOUGHT_SIGNATURE", Ending::Failed(Kind::Transient), GEMINI_API),
    ("IMAGE_OTHER", Ending::Failed(Kind::Transient), GEMINI_API),
    ("NO_IMAGE", Ending::Failed(Kind::Transient), GEMINI_API),
    // The SDK lists it without an explanation; its name means that more follows.
    ("CONTINUATION", Ending::Cut, GEMINI_SDK),
    ("FINISH_REASON_UNSPECIFIED", Ending::Failed(Kind::Transient), GEMINI_API),
];

/// `finish_reason`: OpenAI's own, then those of APIs that are compatible.
pub(crate) const OPENAI: &[Row] = &[
    ("stop", Ending::Complete, CHAT),
    ("length", Ending::Cut, CHAT),
    ("content_filter", Ending::Refused, CHAT),
    ("tool_calls", Ending::ToolUse, CHAT),
    ("function_call", Ending::ToolUse, CHAT),
    ("error", Ending::Failed(Kind::Transient), OPENROUTER),
    ("model_length", Ending::Failed(Kind::TooLarge), MISTRAL),
    ("insufficient_system_resource", Ending::Failed(Kind::Overloaded), DEEPSEEK),
    ("abort", Ending::Failed(Kind::Transient), VLLM),
    // The server broke off an answer that repeats itself; it is no answer.
    ("repetition", Ending::Failed(Kind::Transient), VLLM),
    ("eos", Ending::Complete, TOGETHER),
    ("eos_token", Ending::Complete, TGI),
    ("stop_sequence", Ending::Sequence, TGI),
];

/// `incomplete_details.reason` where there is one, else `status`.
pub(crate) const OPENAI_RESPONSES: &[Row] = &[
    ("completed", Ending::Complete, RESPONSE),
    ("max_output_tokens", Ending::Cut, RESPONSE),
    ("content_filter", Ending::Refused, RESPONSE),
    ("failed", Ending::Failed(Kind::Transient), RESPONSE),
    // Cancelled, or still running: requests without `background` do not end so.
    ("cancelled", Ending::Failed(Kind::Transient), RESPONSE),
    ("in_progress", Ending::Failed(Kind::Transient), RESPONSE),
    ("queued", Ending::Failed(Kind::Transient), RESPONSE),
    // Without a reason: the answer is incomplete, and the remedy is unknown.
    ("incomplete", Ending::Failed(Kind::Transient), RESPONSE),
];

/// Tables in which words of other vendors are looked up: gateways pass them on.
pub(crate) const SHARED: [&[Row]; 6] =
    [ELSEWHERE, OPENAI, ANTHROPIC, GEMINI, BEDROCK, OPENAI_RESPONSES];

const ZHIPU: &str = "https://docs.bigmodel.cn/api-reference";
const GIGACHAT: &str = "https://developers.sber.ru/docs/ru/gigachat/api/reference/rest/post-chat";
const WATSONX: &str =
    "https://ibm.github.io/watsonx-ai-node-sdk/interfaces/0_1_x.WatsonXAI.TextGenResult-1.html";
const COHERE: &str = "https://docs.cohere.com/v1/reference/chat";
const COHERE_2: &str = "https://docs.cohere.com/reference/chat";

/// Words of vendors that have no table of their own.
const ELSEWHERE: &[Row] = &[
    ("sensitive", Ending::Refused, ZHIPU),
    ("network_error", Ending::Failed(Kind::Transient), ZHIPU),
    ("blacklist", Ending::Refused, GIGACHAT),
    ("time_limit", Ending::Cut, WATSONX),
    ("token_limit", Ending::Cut, WATSONX),
    ("not_finished", Ending::Cut, WATSONX),
    ("complete", Ending::Complete, COHERE),
    ("error_toxic", Ending::Refused, COHERE),
    ("error_limit", Ending::Failed(Kind::TooLarge), COHERE),
    ("user_cancel", Ending::Failed(Kind::Transient), COHERE),
    ("timeout", Ending::Failed(Kind::Timeout), COHERE_2),
    ("tool_call", Ending::ToolUse, COHERE_2),
    ("max_length", Ending::Cut, "in the code of small servers; no page documents it"),
];
