"""The vendors' own SDKs before the provider's stand-in."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable

import pytest
from conftest import Simulator

import tidegate
from tidegate._errors import causes

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")

LIMITS = {"openai:m": tidegate.Limits(rpm=240), "anthropic:m": tidegate.Limits(rpm=240)}
#: As strict as a provider can be.
STRICT = 'mean-output-tokens = 20\n[models.m]\nrpm = 240\nalgorithm = "sliding-window"\n'


def asked(client: object, number: int, **options: object) -> object:
    messages = [{"role": "user", "content": f"What is {number} times {number}?"}]
    return client.chat.completions.create(model="m", max_completion_tokens=50, messages=messages, **options)  # type: ignore[attr-defined]


def test_one_line_limits_openai(simulator: Callable[[str], Simulator], redis: str, prefix: str) -> None:
    provider = simulator(STRICT)
    quota = tidegate.Quota(redis, LIMITS, key_prefix=prefix)

    async def all_at_once() -> list[object]:
        client = tidegate.limit(openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="sk-x"), quota)
        assert client.max_retries == 0
        return await asyncio.gather(*(asked(client, number) for number in range(30)))

    answers = asyncio.run(all_at_once())
    account = provider.account("m")
    assert (account["ok"], account["requests"], provider.refused("m")) == (30, 30, 0)
    spent = sum(answer.usage.total_tokens for answer in answers)  # type: ignore[attr-defined]
    assert quota.inspect("openai:m")["requests"] == 30
    assert spent > 0


def test_it_is_charged_by_the_answer(simulator: Callable[[str], Simulator]) -> None:
    provider = simulator(STRICT)
    quota = tidegate.Quota(None, {"anthropic:m": tidegate.Limits(rpm=240, itpm=100_000, otpm=100_000)})
    client = tidegate.limit(anthropic.Anthropic(base_url=provider.url, api_key="sk-x"), quota)
    answer = client.messages.create(
        model="m", max_tokens=900, messages=[{"role": "user", "content": "A question. " * 400}]
    )
    seen = quota.inspect("anthropic:m")
    assert (seen["input"], seen["output"]) == (answer.usage.input_tokens, answer.usage.output_tokens)


def test_a_429_closes_the_gate_and_is_the_sdks_own_error(simulator: Callable[[str], Simulator]) -> None:
    provider = simulator('[[faults]]\nkind = "rate-limited"\nretry-after = "30s"\n')
    quota = tidegate.Quota(None, LIMITS, jitter=0)
    client = tidegate.limit(openai.OpenAI(base_url=f"{provider.url}/v1", api_key="sk-x"), quota, max_wait=0)
    with pytest.raises(openai.RateLimitError):
        asked(client, 1)
    assert provider.account("m")["requests"] == 1, "nobody asked again"
    assert quota.inspect("openai:m")["reason"] == "rate_limited"
    # Some versions of the SDKs wrap what their transport raises.
    with pytest.raises((tidegate.Refused, openai.APIConnectionError)) as refused:
        asked(client, 2)
    assert any(isinstance(cause, tidegate.Refused) for cause in causes(refused.value))
    assert provider.account("m")["requests"] == 1, "the second was not made"


def test_what_asks_no_model_passes(simulator: Callable[[str], Simulator]) -> None:
    provider = simulator("")
    quota = tidegate.Quota(None, LIMITS)
    client = tidegate.limit(openai.OpenAI(base_url=f"{provider.url}/v1", api_key="sk-x"), quota)
    assert client.models.list() is not None
    assert quota.inspect("openai:m")["requests"] == 0


def test_the_clients_own_transport_sends(simulator: Callable[[str], Simulator]) -> None:
    provider = simulator(STRICT)
    client = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="sk-x")
    own, sent = client._client._transport, []
    send = own.handle_request
    own.handle_request = lambda request: sent.append(request.url.path) or send(request)
    quota = tidegate.Quota(None, LIMITS)
    asked(tidegate.limit(client, quota), 1)
    assert sent == ["/v1/chat/completions"]
    assert quota.inspect("openai:m")["requests"] == 1


def test_a_client_that_is_limited_twice_is_charged_once(
    simulator: Callable[[str], Simulator], monkeypatch: pytest.MonkeyPatch
) -> None:
    provider, first = simulator(STRICT), tidegate.Quota(None, LIMITS)
    quota = tidegate.Quota(None, {**LIMITS, "bedrock:m": tidegate.Limits(rpm=240)})
    client = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="sk-x")
    for limiter in (first, quota, quota):
        client = tidegate.limit(client, limiter)
    asked(client, 1)
    assert [it.inspect("openai:m")["requests"] for it in (first, quota)] == [0, 1]
    boto3 = pytest.importorskip("boto3")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    bedrock = boto3.client("bedrock-runtime", region_name="eu-central-1", endpoint_url=provider.url)
    for _ in range(2):
        bedrock = tidegate.limit(bedrock, quota)
    bedrock.converse(modelId="m", messages=[{"role": "user", "content": [{"text": "Hello?"}]}])
    assert quota.inspect("bedrock:m")["requests"] == 1


def test_what_the_clients_own_httpx_adds_to_a_call_stays(simulator: Callable[[str], Simulator]) -> None:
    httpx = pytest.importorskip("httpx")
    provider, sent = simulator(STRICT), []
    own = httpx.Client(headers={"x-gateway": "1"}, params={"tenant": "t"}, event_hooks={"request": [sent.append]})
    client = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="sk-x", http_client=own)
    asked(tidegate.limit(client, tidegate.Quota(None, LIMITS)), 1)
    assert [request.headers["x-gateway"] for request in sent] == ["1"]
    assert sent[0].url.params["tenant"] == "t"


def test_any_httpx_client_can_have_the_transport(simulator: Callable[[str], Simulator]) -> None:
    httpx = pytest.importorskip("httpx")
    provider = simulator(STRICT)
    quota = tidegate.Quota(None, {"mine:m": tidegate.Limits(rpm=240, tpm=100_000)})
    body = {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "Hello?"}]}
    with httpx.Client(transport=tidegate.Transport(quota, "mine", httpx=httpx)) as client:
        headers = {"authorization": "Bearer sk-x"}
        reply = client.post(f"{provider.url}/v1/chat/completions", json=body, headers=headers)
    assert reply.status_code == 200
    assert quota.inspect("mine:m")["requests"] == 1


def test_boto3_asks_once_and_is_heard(
    simulator: Callable[[str], Simulator], monkeypatch: pytest.MonkeyPatch
) -> None:
    boto3 = pytest.importorskip("boto3")
    provider = simulator('[[faults]]\nkind = "rate-limited"\nmatching = "refused"\n')
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    quota = tidegate.Quota(None, {"bedrock:m": tidegate.Limits(rpm=240, tpm=100_000)}, jitter=0)

    def ask(url: str, text: str) -> dict[str, object]:
        plain = boto3.client("bedrock-runtime", region_name="eu-central-1", endpoint_url=url)
        client = tidegate.limit(plain, quota, max_wait=0)
        messages = [{"role": "user", "content": [{"text": text}]}]
        return client.converse(modelId="m", messages=messages, inferenceConfig={"maxTokens": 50})  # type: ignore[no-any-return]

    answer = ask(provider.url, "Hello?")
    assert quota.inspect("bedrock:m")["input"] == answer["usage"]["inputTokens"]  # type: ignore[index]
    with pytest.raises(Exception, match="Could not connect"):
        ask("http://127.0.0.1:9", "Hello?")
    assert quota.inspect("bedrock:m")["input"] == answer["usage"]["inputTokens"], "nothing was asked"  # type: ignore[index]
    with pytest.raises(Exception, match="ThrottlingException"):
        ask(provider.url, "This is refused.")
    assert provider.account("m")["requests"] == 2, "boto3 did not ask again"
    assert quota.inspect("bedrock:m")["reason"] == "rate_limited"
    with pytest.raises(tidegate.Refused):
        ask(provider.url, "Hello?")
    with pytest.raises(ValueError, match="retries"):
        tidegate.limit(boto3.client("bedrock-runtime", region_name="x"), quota, retries=2)


def test_what_boto3_reads_piece_by_piece_is_charged_by_its_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    boto3 = pytest.importorskip("boto3")
    from botocore.awsrequest import AWSResponse, HeadersDict

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    quota = tidegate.Quota(None, {"bedrock:m": tidegate.Limits(rpm=240, tpm=100_000)})
    client = tidegate.limit(boto3.client("bedrock-runtime", region_name="eu-central-1"), quota)
    counts = {"x-amzn-bedrock-input-token-count": "30", "x-amzn-bedrock-output-token-count": "7"}

    def answer(request: object, **_: object) -> object:
        return AWSResponse("http://h", 200, HeadersDict({"content-length": "2", **counts}), io.BytesIO(b"{}"))

    client.meta.events.register("before-send.bedrock-runtime", answer)
    assert client.invoke_model(modelId="m", body='{"max_tokens": 500}')["body"].read() == b"{}"
    assert quota.inspect("bedrock:m")["input"] == 30
    counts.clear()
    client.invoke_model(modelId="m", body='{"max_tokens": 500}')
    assert quota.inspect("bedrock:m")["combined"] > 30 + 7 + 500, "it stays charged"


@pytest.mark.parametrize("is_read", [False, True])
def test_a_stream_is_charged_by_its_last_event(is_read: bool) -> None:
    httpx = pytest.importorskip("httpx2")
    events = (
        'data: {"choices": [{"index": 0, "delta": {"content": "four"}}]}\n\n'
        'data: {"choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 7, "total_tokens": 37}}\n\n'
        "data: [DONE]\n\n"
    )

    def answer(request: object) -> object:
        body = {"text": events} if is_read else {"stream": httpx.ByteStream(events.encode())}
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, **body)

    quota = tidegate.Quota(None, {"mine:m": tidegate.Limits(rpm=240, itpm=100_000)}, vendors={"mine": "mistral"})
    transport = tidegate.Transport(quota, "mine", httpx.MockTransport(answer), httpx=httpx)
    client = openai.OpenAI(
        base_url="http://h/v1", api_key="sk-x", http_client=httpx.Client(transport=transport), max_retries=0
    )
    text = "".join(
        choice.delta.content or "" for chunk in asked(client, 2, stream=True) for choice in chunk.choices  # type: ignore[attr-defined]
    )
    assert text == "four"
    assert quota.inspect("mine:m")["input"] == 30
