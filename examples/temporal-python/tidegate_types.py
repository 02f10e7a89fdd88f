# Written by scripts/door_stubs.py from workflows/src/input/call.rs and workflows/src/contract/call.rs; change the comments there.
from typing import Any, Literal, NotRequired, TypedDict

class ByUri(TypedDict):
    # What is too large to pass through Temporal, under [calls] inputs.
    uri: str

class Message(TypedDict):
    role: Literal['system', 'user', 'assistant']
    content: str

class CallInput(TypedDict):
    # The model that answers, or
    model: NotRequired[str]
    # a configured list of models.
    route: NotRequired[str]
    # The question, or
    prompt: NotRequired[str | ByUri]
    # several turns, the last of which asks.
    messages: NotRequired[list[Message] | ByUri]
    # The system prompt.
    system: NotRequired[str]
    # Most output tokens.
    max_output_tokens: NotRequired[int]
    # What happens to an answer that is cut or empty.
    on_cut: NotRequired[Literal['raise', 'keep', 'fail']]
    # JSON Schema that the answer must satisfy.
    schema: NotRequired[dict[str, Any]]
    # Fields of the vendor's request: temperature, seed, service tier and others.
    parameters: NotRequired[dict[str, Any]]
    # How much a reasoning model thinks.
    effort: NotRequired[Literal['none', 'low', 'medium', 'high']]
    # The tenant whose budget pays.
    tenant: NotRequired[str]
    # The group that the call belongs to; by default its workflow.
    batch: NotRequired[str]
    # Instead of all that is asked: a body in the vendor's own form, sent as it is.
    body: NotRequired[dict[str, Any] | ByUri]

class EmbedInput(TypedDict):
    # The model that gives the vectors.
    model: str
    # The texts.
    inputs: list[str] | ByUri
    # Dimensions of each vector.
    dimensions: NotRequired[int]
    # Fields of the vendor's request.
    parameters: NotRequired[dict[str, Any]]
    # The tenant whose budget pays.
    tenant: NotRequired[str]
    # The group that the call belongs to; by default its workflow.
    batch: NotRequired[str]

class CallOutcome(TypedDict):
    # The model's answer.
    answer: NotRequired[str]
    # The answer as JSON, if a schema was given.
    value: NotRequired[Any]
    # The vendor's reply as it came, if a body was given.
    reply: NotRequired[Any]
    # URI of the whole outcome; set instead of fields that are too large to return.
    answer_uri: NotRequired[str]
    # Whether the answer is whole: `complete`, `cut` or `unknown`.
    finish: str
    # The model that answered.
    model: str
    # All input tokens, cached or not.
    input_tokens: int
    # Input tokens read from a prompt cache.
    cached_input_tokens: int
    # Output tokens, reasoning included.
    output_tokens: int
    # Tokens and price are estimated: the provider reported no usage, or an impossible one.
    usage_unknown: NotRequired[bool]
    # US dollars; absent if no price is known.
    cost_usd: NotRequired[float | None]
    # Provider calls, including the last one.
    provider_calls: int

class EmbedOutcome(TypedDict):
    # A vector for each input, in their order; all of the same length.
    vectors: NotRequired[list[list[float]]]
    # URI of the whole outcome; set instead of vectors that are too large to return.
    answer_uri: NotRequired[str]
    # The model that gave them.
    model: str
    # Input tokens.
    input_tokens: int
    # Tokens and price are estimated: the provider reported no usage.
    usage_unknown: NotRequired[bool]
    # US dollars; absent if no price is known.
    cost_usd: NotRequired[float | None]
    # Provider calls, including the last one.
    provider_calls: int
