"""Activities of Temporal's own Python SDK, on a real dev server."""

from __future__ import annotations

import ast
import asyncio
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from conftest import Simulator
from test_pages import Page

import tidegate

openai = pytest.importorskip("openai")
pytest.importorskip("temporalio")

from temporalio import activity, workflow  # noqa: E402
from temporalio.client import Client, WorkflowFailureError  # noqa: E402
from temporalio.common import RetryPolicy  # noqa: E402
from temporalio.exceptions import ActivityError, ApplicationError  # noqa: E402
from temporalio.worker import UnsandboxedWorkflowRunner, Worker  # noqa: E402

from tidegate import temporal as gated  # noqa: E402

MODEL = "openai:m"


@workflow.defn
class AskAll:
    """Asks so many questions at once, with an activity of this name."""

    @workflow.run
    async def run(self, asked: list[Any]) -> int:
        name, questions, attempts = asked
        answers = await asyncio.gather(
            *(
                workflow.execute_activity(
                    name,
                    number,
                    start_to_close_timeout=timedelta(minutes=2),
                    heartbeat_timeout=timedelta(seconds=20),
                    retry_policy=RetryPolicy(maximum_attempts=attempts),
                )
                for number in range(questions)
            )
        )
        return len([answer for answer in answers if answer])


async def ran(
    address: str,
    activities: list[Callable[..., Any]],
    asked: list[Any],
    interceptors: list[Any],
    plugins: tuple[Any, ...] = (),
) -> tuple[int, Any]:
    client, queue = await Client.connect(address), f"queue-{uuid.uuid4().hex}"
    worker = Worker(
        client,
        task_queue=queue,
        workflows=[AskAll],
        activities=activities,
        interceptors=interceptors,
        plugins=plugins,
        workflow_runner=UnsandboxedWorkflowRunner(),
    )
    async with worker:
        handle = await client.start_workflow(AskAll.run, asked, id=queue, task_queue=queue)
        return await handle.result(), handle


@workflow.defn
class AskOne:
    """Calls the activity of docs/quick-starts/python-temporal.md, and one that calls by hand."""

    @workflow.run
    async def run(self, question: str) -> str:
        bounds = {"start_to_close_timeout": timedelta(minutes=1), "heartbeat_timeout": timedelta(seconds=20)}
        await workflow.execute_activity("by_hand", **bounds)
        answer: str = await workflow.execute_activity("ask", question, **bounds)
        return answer


def test_what_the_page_shows(
    simulator: Callable[[str], Simulator], redis: str, temporal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = simulator("mean-output-tokens = 20\n")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    page = Page("python-temporal", {'"redis://127.0.0.1"': f'"{redis}/15"'})

    @activity.defn
    async def by_hand() -> None:
        await eval(compile(page.replaced(1), "by hand", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), page.names)

    async def provided() -> dict[str, Any]:
        return {"usage": {"prompt_tokens": 30, "completion_tokens": 4}}

    async def shown() -> str:
        client, made = await Client.connect(temporal), []

        def worker(client: Client, *, activities: list[Any], **given: Any) -> None:
            given |= {"activities": [*activities, by_hand], "workflows": [AskOne]}
            made.append(Worker(client, workflow_runner=UnsandboxedWorkflowRunner(), **given))

        page.names |= {"AsyncOpenAI": openai.AsyncOpenAI, "activity": activity, "client": client, "Worker": worker}
        page.names["call_the_provider"] = provided
        exec(page.replaced(0), page.names)
        async with made[0]:
            asked = client.execute_workflow(AskOne.run, "What is a neap tide?", id=uuid.uuid4().hex, task_queue="questions")
            return await asyncio.wait_for(asked, 60)

    assert asyncio.run(shown())
    assert page.names["quota"].inspect("openai:gpt-4.1-mini")["requests"] == 2
    assert provider.account("gpt-4.1-mini")["ok"] == 1


def test_activities_with_a_vendors_sdk_share_a_quota(
    simulator: Callable[[str], Simulator], redis: str, prefix: str, temporal: str
) -> None:
    provider = simulator('mean-output-tokens = 20\n[models.m]\nrpm = 120\nalgorithm = "sliding-window"\n')
    quota = tidegate.Quota(redis, {MODEL: tidegate.Limits(rpm=120, burst="1s")}, key_prefix=prefix, max_slot_wait="2s")
    attempts: list[int] = []

    async def all_of_them() -> int:
        client = tidegate.limit(openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="sk-x"), quota)

        @activity.defn(name="ask")
        async def ask(number: int) -> str | None:
            attempts.append(activity.info().attempt)
            messages = [{"role": "user", "content": f"What is {number} times {number}?"}]
            answer = await client.chat.completions.create(model="m", max_completion_tokens=50, messages=messages)
            return answer.choices[0].message.content

        answered, _ = await ran(temporal, [ask], ["ask", 40, 0], [gated.Interceptor(quota)])
        return answered

    assert asyncio.run(all_of_them()) == 40
    account = provider.account("m")
    assert (account["ok"], account["requests"], provider.refused("m")) == (40, 40, 0), "one call a question"
    assert max(attempts) > 1, "far turns were waited for by Temporal"


def test_a_plug_in_limits_activities_and_counts_its_worker(
    simulator: Callable[[str], Simulator], redis: str, prefix: str, temporal: str
) -> None:
    store = pytest.importorskip("redis").Redis.from_url(redis)
    provider = simulator('mean-output-tokens = 20\n[models.m]\nrpm = 120\nalgorithm = "sliding-window"\n')
    quota = tidegate.Quota(redis, {MODEL: tidegate.Limits(rpm=120, burst="1s")}, key_prefix=prefix, max_slot_wait="2s")
    attempts: list[int] = []
    live: set[bytes] = set()

    async def all_of_them() -> int:
        client = tidegate.limit(openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="sk-x"), quota)

        @activity.defn(name="ask")
        async def ask(number: int) -> str | None:
            attempts.append(activity.info().attempt)
            while not live:
                live.update(name for key in store.scan_iter(f"{prefix}:*workers") for name in store.zrange(key, 0, -1))
                await asyncio.sleep(0.05)
            messages = [{"role": "user", "content": f"What is {number} times {number}?"}]
            answer = await client.chat.completions.create(model="m", max_completion_tokens=50, messages=messages)
            return answer.choices[0].message.content

        answered, _ = await ran(temporal, [ask], ["ask", 40, 0], [], (gated.Plugin(quota),))
        return answered

    assert asyncio.run(all_of_them()) == 40
    account = provider.account("m")
    assert (account["ok"], account["requests"], provider.refused("m")) == (40, 40, 0), "one call a question"
    assert max(attempts) > 1, "far turns were waited for by Temporal"
    assert len(live) == 1 and live.pop().startswith(b"queue-")


def test_a_429_is_rate_limited_and_the_next_attempt_comes_when_it_asks_for(
    simulator: Callable[[str], Simulator], temporal: str
) -> None:
    fault = '[[faults]]\nkind = "rate-limited"\ntimes = 1\nretry-after = "2s"\n'
    provider = simulator(f"mean-output-tokens = 20\n{fault}")
    quota = tidegate.Quota(None, {MODEL: tidegate.Limits(rpm=600)}, jitter=0, base_backoff="1s")

    async def one() -> Any:
        client = tidegate.limit(openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="sk-x"), quota)

        @activity.defn(name="ask")
        @gated.limited(quota)
        async def ask(number: int) -> str | None:
            messages = [{"role": "user", "content": f"What is {number}?"}]
            answer = await client.chat.completions.create(model="m", max_completion_tokens=50, messages=messages)
            return answer.choices[0].message.content

        answered, _ = await ran(temporal, [ask], ["ask", 1, 0], [])
        return answered

    assert asyncio.run(one()) == 1
    assert provider.account("m")["requests"] == 2, "one refused, one answered"


def test_what_no_retry_mends_is_not_retried(temporal: str) -> None:
    quota = tidegate.Quota(None, {MODEL: tidegate.Limits(rpm=60, tpm=1_000)})

    async def one() -> ApplicationError:
        @activity.defn(name="ask")
        async def ask(number: int) -> None:
            async with gated.admit(quota, MODEL, tokens=100_000, max_output=1):
                raise AssertionError("it was admitted")

        with pytest.raises(WorkflowFailureError) as failed:
            await ran(temporal, [ask], ["ask", 1, 5], [gated.Interceptor(quota)])
        cause = failed.value.cause
        assert isinstance(cause, ActivityError) and isinstance(cause.cause, ApplicationError)
        return cause.cause

    error = asyncio.run(one())
    assert (error.type, error.non_retryable) == ("TooLarge", True)
