"""Asks the simulator through the vendors' own SDKs, and prints what they made of its answers as JSON.

Usage: ask.py URL. Each vendor is asked three times: for an answer, for one that satisfies a schema, and once more than its
limit allows. Where a vendor has batches, two requests go that way; where it has embeddings, two texts become vectors.
"""

import io
import json
import sys
import time

import anthropic
import boto3
import botocore.config
import botocore.exceptions
import google.genai
import google.genai.errors
import openai

URL = sys.argv[1]
SCHEMA = {
    "type": "object",
    "properties": {"summary": {"type": "string"}},
    "required": ["summary"],
    "additionalProperties": False,
}
DOCUMENT = "<document>\nThe tide is high at noon. The ferry leaves an hour later.\n</document>"
LIMITED = "limited"


def told(text, stop, usage_in, usage_out):
    return {"text": text, "stop": str(stop), "input": usage_in, "output": usage_out}


def refused(ask, error, status):
    """The second call within a minute is one too many."""
    ask()
    try:
        ask()
    except error as caught:
        return {"kind": type(caught).__name__, "status": status(caught), "message": str(caught)[:200]}
    return None


def with_anthropic():
    client = anthropic.Anthropic(api_key="k", base_url=URL, max_retries=0)
    messages = [{"role": "user", "content": DOCUMENT}]

    def ask(model="claude", **more):
        return client.messages.create(model=model, max_tokens=300, messages=messages, **more)

    def answer(message):
        return told(message.content[0].text, message.stop_reason, message.usage.input_tokens, message.usage.output_tokens)

    requests = [{"custom_id": f"d-{n}", "params": {"model": "claude", "max_tokens": 99, "messages": messages}} for n in range(2)]
    batch = client.messages.batches.create(requests=requests)
    listed = [one.id for one in client.messages.batches.list(limit=5)]
    while client.messages.batches.retrieve(batch.id).processing_status != "ended":
        time.sleep(0.1)
    results = {one.custom_id: answer(one.result.message) for one in client.messages.batches.results(batch.id)}
    return {
        "plain": answer(ask()),
        "schema": answer(ask(output_config={"format": {"type": "json_schema", "schema": SCHEMA}})),
        "refused": refused(lambda: ask(LIMITED + "-a"), anthropic.RateLimitError, lambda error: error.status_code),
        "batch": {"listed": batch.id in listed, "results": results},
    }


def with_openai():
    client = openai.OpenAI(api_key="k", base_url=URL + "/v1", max_retries=0)
    messages = [{"role": "user", "content": DOCUMENT}]

    def ask(model="gpt", **more):
        return client.chat.completions.create(model=model, max_completion_tokens=300, messages=messages, **more)

    def answer(completion):
        choice = completion.choices[0]
        usage = completion.usage
        return told(choice.message.content, choice.finish_reason, usage.prompt_tokens, usage.completion_tokens)

    def line(number):
        body = {"model": "gpt", "messages": messages}
        return json.dumps({"custom_id": f"d-{number}", "method": "POST", "url": "/v1/chat/completions", "body": body})

    file = io.BytesIO("\n".join(map(line, range(2))).encode())
    file.name = "requests.jsonl"
    uploaded = client.files.create(file=file, purpose="batch")
    batch = client.batches.create(
        input_file_id=uploaded.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"note": "ours"}
    )
    listed = [one.id for one in client.batches.list(limit=5) if one.metadata == {"note": "ours"}]
    while (done := client.batches.retrieve(batch.id)).status != "completed":
        time.sleep(0.1)
    lines = [json.loads(text) for text in client.files.content(done.output_file_id).text.splitlines()]
    completions = {one["custom_id"]: openai.types.chat.ChatCompletion(**one["response"]["body"]) for one in lines}
    deleted = client.files.delete(uploaded.id).deleted
    # The SDK asks for base64, and reads it.
    embedded = client.embeddings.create(model="text-embedding-3-small", input=["high", "low"], dimensions=8)
    schema = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA}}
    return {
        "plain": answer(ask()),
        "schema": answer(ask(response_format=schema)),
        "refused": refused(lambda: ask(LIMITED + "-o"), openai.RateLimitError, lambda error: error.status_code),
        "vectors": [len(one.embedding) for one in embedded.data],
        "batch": {"listed": batch.id in listed and deleted, "results": {name: answer(one) for name, one in completions.items()}},
    }


def with_responses():
    client = openai.OpenAI(api_key="k", base_url=URL + "/v1", max_retries=0)

    def ask(model="gpt-r", **more):
        return client.responses.create(model=model, input=DOCUMENT, max_output_tokens=300, **more)

    def answer(response):
        return told(response.output_text, response.status, response.usage.input_tokens, response.usage.output_tokens)

    schema = {"format": {"type": "json_schema", "name": "answer", "strict": True, "schema": SCHEMA}}
    return {
        "plain": answer(ask()),
        "schema": answer(ask(text=schema)),
        "refused": refused(lambda: ask(LIMITED + "-r"), openai.RateLimitError, lambda error: error.status_code),
    }


def with_gemini():
    client = google.genai.Client(api_key="k", http_options={"base_url": URL})

    def ask(model="gemini", **more):
        config = {"max_output_tokens": 300, **more}
        return client.models.generate_content(model=model, contents=DOCUMENT, config=config)

    def answer(response):
        usage = response.usage_metadata
        stop = response.candidates[0].finish_reason.name
        return told(response.text, stop, usage.prompt_token_count, usage.candidates_token_count)

    # Files and batches are of this version.
    older = google.genai.Client(api_key="k", http_options={"base_url": URL, "api_version": "v1beta"})
    contents = [{"role": "user", "parts": [{"text": DOCUMENT}]}]
    lines = [json.dumps({"key": f"d-{number}", "request": {"contents": contents}}) for number in range(2)]
    file = io.BytesIO("\n".join(lines).encode())
    uploaded = older.files.upload(file=file, config={"mime_type": "application/jsonl", "display_name": "requests"})
    batch = older.batches.create(model="gemini", src=uploaded.name, config={"display_name": "ours"})
    listed = [one.name for one in older.batches.list(config={"page_size": 5}) if one.display_name == "ours"]
    while (done := older.batches.get(name=batch.name)).state.name != "JOB_STATE_SUCCEEDED":
        time.sleep(0.1)
    results = {}
    for line in older.files.download(file=done.dest.file_name).decode().splitlines():
        one = json.loads(line)
        results[one["key"]] = answer(google.genai.types.GenerateContentResponse.model_validate(one["response"]))
    schema = {"response_mime_type": "application/json", "response_json_schema": SCHEMA}
    config = {"output_dimensionality": 8, "task_type": "CLUSTERING"}
    embedded = client.models.embed_content(model="gemini-embedding-001", contents=["high", "low"], config=config)
    return {
        "vectors": [len(one.values) for one in embedded.embeddings],
        "plain": answer(ask()),
        "schema": answer(ask(**schema)),
        "refused": refused(lambda: ask(LIMITED + "-g"), google.genai.errors.ClientError, lambda error: error.code),
        "batch": {"listed": batch.name in listed, "results": results},
    }


def with_bedrock():
    config = botocore.config.Config(retries={"total_max_attempts": 1})
    # A bearer token would want TLS.
    keys = {"aws_access_key_id": "k", "aws_secret_access_key": "k"}
    client = boto3.client("bedrock-runtime", endpoint_url=URL, region_name="eu-central-1", config=config, **keys)

    def ask(model="anthropic.claude-v1:0", **more):
        messages = [{"role": "user", "content": [{"text": DOCUMENT}]}]
        return client.converse(modelId=model, messages=messages, inferenceConfig={"maxTokens": 300}, **more)

    def answer(response):
        text = response["output"]["message"]["content"][0]["text"]
        return told(text, response["stopReason"], response["usage"]["inputTokens"], response["usage"]["outputTokens"])

    return {
        "plain": answer(ask()),
        "refused": refused(
            lambda: ask(LIMITED + "-b"),
            botocore.exceptions.ClientError,
            lambda error: error.response["ResponseMetadata"]["HTTPStatusCode"],
        ),
    }


ALL = [with_anthropic, with_openai, with_responses, with_gemini, with_bedrock]
print(json.dumps({ask.__name__.removeprefix("with_"): ask() for ask in ALL}))
