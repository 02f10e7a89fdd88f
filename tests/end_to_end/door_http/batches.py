"""Batches through the vendors' own SDKs, as they come, and what became of them as JSON.

Usage: batches.py URL KEY OTHER_KEY LINES
"""

import io
import json
import sys
import time

import anthropic
import openai

URL, KEY, OTHER, LINES = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
o = openai.OpenAI(api_key=KEY, base_url=URL + "/v1")
other = openai.OpenAI(api_key=OTHER, base_url=URL + "/v1")
a = anthropic.Anthropic(api_key=KEY, base_url=URL)
other_a = anthropic.Anthropic(api_key=OTHER, base_url=URL)


def line(custom_id, body, url="/v1/chat/completions", method="POST"):
    return json.dumps({"custom_id": custom_id, "method": method, "url": url, "body": body})


def chat(text, model="openai:m", **more):
    return {"model": model, "messages": [{"role": "user", "content": text}], **more}


def run(lines, endpoint, window="24h", **more):
    file = io.BytesIO("\n".join(lines).encode())
    file.name = "requests.jsonl"
    file = o.files.create(file=file, purpose="batch")
    begun = time.monotonic()
    batch = o.batches.create(input_file_id=file.id, endpoint=endpoint, completion_window=window, **more)
    seen = []
    while True:
        if not seen or seen[-1] != batch.status:
            seen.append(batch.status)
        if batch.status in ("completed", "failed", "expired", "cancelled"):
            break
        if time.monotonic() - begun > 120:
            raise SystemExit(f"still {batch}")
        time.sleep(0.1)
        batch = o.batches.retrieve(batch.id)
    read = lambda id: [json.loads(one) for one in o.files.content(id).text.splitlines()] if id else []
    return batch, seen, read(batch.output_file_id), read(batch.error_file_id)


def caught(ask):
    try:
        ask()
    except Exception as error:
        return type(error).__name__
    return None


told = {}
good = [line(f"good-{number}", chat(f"Question {number}", max_tokens=50)) for number in range(LINES)]
good += [line("translated", chat("Hello?", "anthropic:claude-sonnet-5", max_tokens=50))]
faulty = [
    line("unknown-model", chat("?", "openai:other")),
    line("good-0", chat("again")),
    line("not-translated", chat("?", "anthropic:claude-sonnet-5", seed=7)),
    line("streams", chat("?", stream=True)),
    line("other-url", chat("?"), url="/v1/embeddings"),
    line("other-method", chat("?"), method="GET"),
    "this is no JSON",
]
batch, seen, output, errors = run(good + faulty, "/v1/chat/completions", metadata={"of": "tests"})
told["chat"] = {
    "status": batch.status,
    "seen": seen,
    "counts": batch.request_counts.model_dump(include={"total", "completed", "failed"}),
    "metadata": batch.metadata,
    "output": sorted(one["custom_id"] for one in output),
    "codes": sorted({one["response"]["status_code"] for one in output}),
    "words": all(one["response"]["body"]["choices"][0]["message"]["content"] for one in output),
    "errors": {
        str(one["custom_id"]): [one["response"]["status_code"], one["response"]["body"]["error"]["message"]]
        for one in errors
    },
    "in_order": [one["custom_id"] for one in output] == [json.loads(one)["custom_id"] for one in good],
}
told["files"] = sorted(file.purpose for file in o.files.list())
told["batches"] = [one.id == batch.id for one in o.batches.list(limit=1)]
told["other_key"] = [
    caught(lambda: other.batches.retrieve(batch.id)),
    caught(lambda: other.batches.cancel(batch.id)),
    caught(lambda: other.files.content(batch.output_file_id)),
    caught(lambda: other.files.delete(batch.input_file_id)),
    caught(lambda: other.batches.create(input_file_id=batch.input_file_id, endpoint="/v1/chat/completions", completion_window="24h")),
]
told["others"] = [list(other.batches.list()), list(other.files.list())]
told["cancelled_too_late"] = caught(lambda: o.batches.cancel(batch.id))
told["wrong_window"] = caught(lambda: o.batches.create(input_file_id=batch.input_file_id, endpoint="/v1/chat/completions", completion_window="soon"))

texts = [line(f"text-{n}", {"model": "openai:text-embedding-3-small", "input": [f"Text {n}", "and more"]}, "/v1/embeddings") for n in range(20)]
batch, _, output, errors = run(texts, "/v1/embeddings", "1h")
told["embeddings"] = [batch.status, len(output), sum(len(one["response"]["body"]["data"]) for one in output), len(errors)]

batch, _, _, _ = run(["no", "json"], "/v1/responses")
told["no_jsonl"] = [batch.status, batch.errors.data[0].code, batch.errors.data[0].line]

params = lambda text, **more: {"model": "anthropic:claude-sonnet-5", "max_tokens": 50, "messages": [{"role": "user", "content": text}], **more}
requests = [{"custom_id": f"request-{n}", "params": params(f"Question {n}")} for n in range(LINES)]
requests += [{"custom_id": "unknown", "params": params("?", model="anthropic:other")}]
batch = a.messages.batches.create(requests=requests)
first = batch.processing_status
while batch.processing_status != "ended":
    time.sleep(0.1)
    batch = a.messages.batches.retrieve(batch.id)
results = list(a.messages.batches.results(batch.id))
told["messages"] = {
    "first": first,
    "counts": batch.request_counts.model_dump(),
    "results": sorted(f"{one.custom_id} {one.result.type}" for one in results),
    "words": all(one.result.message.content[0].text for one in results if one.result.type == "succeeded"),
    "error": [one.result.error.error.type for one in results if one.result.type == "errored"],
    "listed": [one.id == batch.id for one in a.messages.batches.list(limit=1)],
    "other_key": caught(lambda: list(other_a.messages.batches.results(batch.id))),
    "twice": caught(lambda: a.messages.batches.create(requests=requests[:1] * 2)),
    "deleted": a.messages.batches.delete(batch.id).type,
    "gone": caught(lambda: a.messages.batches.retrieve(batch.id)),
}
print(json.dumps(told))
