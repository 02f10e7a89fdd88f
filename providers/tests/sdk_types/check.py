"""Holds request bodies against the types that the vendors' own SDKs have for them.

Reads lines of {"api": …, "body": …}; prints a line for each fault, and at the end how many bodies were checked. A name that
a type does not have is a fault, which the SDKs themselves would send on.
"""

import collections.abc
import json
import sys
import types
import typing

import botocore.loaders
import botocore.model
import botocore.validate
import google.genai.types as gemini
import pydantic
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.embedding_create_params import EmbeddingCreateParams
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from typing_extensions import Annotated, NotRequired, Required, get_type_hints, is_typeddict

QUALIFIERS = (Required, NotRequired, Annotated)


def fields_of(kind):
    """The fields of a TypedDict, and those that must be there."""
    fields = get_type_hints(kind, include_extras=True)
    needed = Required if not kind.__total__ else None
    return fields, [name for name, one in fields.items() if typing.get_origin(one) is needed]


def faults(value, kind, path):
    """What is wrong with a value that should be of this kind: a list of sentences."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in QUALIFIERS:
        return faults(value, arguments[0], path)
    if kind in (typing.Any, object) or isinstance(kind, typing.TypeVar):
        return []
    if origin in (typing.Union, types.UnionType):
        each = [faults(value, one, path) for one in arguments]
        # The branch that comes nearest tells most.
        return [] if [] in each else max(each, key=lambda found: max(len(sentence.split(":")[0]) for sentence in found))
    if origin is typing.Literal:
        return [] if value in arguments else [f"{path}: {value!r} is none of {arguments}"]
    if is_typeddict(kind):
        if not isinstance(value, dict):
            return [f"{path}: {value!r} is no {kind.__name__}"]
        fields, needed = fields_of(kind)
        found = [f"{path}.{name}: {kind.__name__} has no such name" for name in value if name not in fields]
        found += [f"{path}.{name}: {kind.__name__} must have it" for name in needed if name not in value]
        return found + [fault for name in value if name in fields for fault in faults(value[name], fields[name], f"{path}.{name}")]
    # OpenAI's SDK has a kind of sequence of its own.
    if origin in (list, collections.abc.Iterable, collections.abc.Sequence) or getattr(origin, "__name__", "") == "SequenceNotStr":
        if not isinstance(value, list):
            return [f"{path}: {value!r} is no list"]
        return [fault for index, one in enumerate(value) for fault in faults(one, arguments[0], f"{path}[{index}]")]
    if origin in (dict, collections.abc.Mapping):
        if not isinstance(value, dict):
            return [f"{path}: {value!r} is no object"]
        return [fault for name, one in value.items() for fault in faults(one, arguments[1], f"{path}.{name}")]
    if kind is float:
        kind = (int, float)
    if kind is None:
        kind = type(None)
    if isinstance(value, bool) and kind is not bool:
        return [f"{path}: {value!r} is no {kind}"]
    # What is left of these is for files that an SDK reads itself.
    return [] if origin is None and isinstance(value, kind) else [f"{path}: {value!r} is no {kind}"]


def pydantic_faults(value, kind, path):
    try:
        pydantic.TypeAdapter(kind).validate_python(value)
    except pydantic.ValidationError as error:
        return [f"{path}.{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
    return []


def of_parts(body, parts, path):
    """The SDK has a model for each part of this vendor's request, and none for the whole."""
    found = [f"{path}.{name}: no such name" for name in body if name not in parts]
    return found + [fault for name in body if name in parts for fault in pydantic_faults(body[name], parts[name], f"{path}.{name}")]


GEMINI = {
    "contents": list[gemini.Content],
    "systemInstruction": gemini.Content,
    "generationConfig": gemini.GenerationConfig,
    "safetySettings": list[gemini.SafetySetting],
    "tools": list[gemini.Tool],
    "toolConfig": gemini.ToolConfig,
    "cachedContent": str,
    "serviceTier": gemini.ServiceTier,
}
GEMINI_EMBEDDING = {
    "model": str,
    "content": gemini.Content,
    "taskType": str,
    "title": str,
    "outputDimensionality": int,
}


def bedrock():
    description = botocore.loaders.Loader().load_service_model("bedrock-runtime", "service-2")
    return botocore.model.ServiceModel(description).operation_model("Converse").input_shape


CONVERSE = bedrock()


def converse_faults(body, path):
    # The model's name stands in the path of the request.
    report = botocore.validate.ParamValidator().validate({"modelId": "m", **body}, CONVERSE)
    return [f"{path}: {report.generate_report()}"] if report.has_errors() else []


def embedding_faults(body, path):
    found = [f"{path}.{name}: no such name" for name in body if name != "requests"]
    return found + [fault for index, one in enumerate(body["requests"]) for fault in of_parts(one, GEMINI_EMBEDDING, f"{path}[{index}]")]


# Models from Claude 4.7 on refuse these, and the SDK has dropped them; the API goes on to take them for older ones.
SAMPLING = {"temperature", "top_p", "top_k"}
TAKE_SAMPLING = ("claude-3", "claude-haiku-4-5")


def anthropic_faults(body, path):
    old = body["model"].startswith(TAKE_SAMPLING)
    known = {name: value for name, value in body.items() if not (old and name in SAMPLING)}
    return faults(known, MessageCreateParamsNonStreaming, path)


CHECKS = {
    "anthropic": anthropic_faults,
    "openai": lambda body, path: faults(body, CompletionCreateParamsNonStreaming, path),
    "responses": lambda body, path: faults(body, ResponseCreateParamsNonStreaming, path),
    "openai embeddings": lambda body, path: faults(body, EmbeddingCreateParams, path),
    "gemini": lambda body, path: of_parts(body, GEMINI, path),
    "gemini embeddings": embedding_faults,
    "bedrock": converse_faults,
}

checked = 0
for line in sys.stdin:
    asked = json.loads(line)
    found = CHECKS[asked["api"]](asked["body"], asked["api"])
    if found:
        print("; ".join(found).replace("\n", " "))
    checked += 1
print(f"checked {checked}")
