"""Two languages at once on one limit: tidegate's own worker and Python's callers, at a provider that
counts strictly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Simulator

import tidegate

openai = pytest.importorskip("openai")
pytest.importorskip("temporalio")
from temporalio.client import Client  # noqa: E402

RPM = 100
#: More than a minute takes: both press the limit, for as long as it lasts.
DOCUMENTS = 60
QUESTIONS = 60


def test_a_batch_and_callers_of_python_keep_one_limit(
    simulator: Callable[[str], Simulator],
    worker: Callable[[str, str], Path],
    prefix: str,
    temporal: str,
    tmp_path: Path,
) -> None:
    provider = simulator(f'mean-output-tokens = 20\n[models.m]\nrpm = {RPM}\nalgorithm = "sliding-window"\n')
    documents = tmp_path / "in"
    documents.mkdir()
    for number in range(DOCUMENTS):
        (documents / f"{number:03}.md").write_text(f"# Report {number}\n\nThe tide was {number} feet high.\n")
    quota = tidegate.Quota.from_config(worker(f"{provider.url}/v1", f"rpm = {RPM}"))

    async def both() -> tuple[list[object], tidegate.Batch]:
        client = await Client.connect(temporal)
        batch = await tidegate.run(
            documents,
            output=tmp_path / "out",
            instructions="Summarise in one sentence.",
            model="openai:m",
            max_output_tokens=64,
            on_cut="keep",
            client=client,
            task_queue=prefix,
        )
        sdk = tidegate.limit(openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="sk-x"), quota)

        async def ask(number: int) -> object:
            messages = [{"role": "user", "content": f"What is {number} times {number}?"}]
            return await sdk.chat.completions.create(model="m", max_completion_tokens=64, messages=messages)

        questions = asyncio.gather(*(ask(number) for number in range(QUESTIONS)))
        last: dict[str, object] = {}
        async for last in batch.follow(every=1.0):
            pass
        assert (last["succeeded"], last["done"]) == (DOCUMENTS, True), last
        return await questions, batch

    answers, batch = asyncio.run(asyncio.wait_for(both(), 300))
    results = list(batch.results())
    assert (len(answers), len(results), batch.results().failures()) == (QUESTIONS, DOCUMENTS, [])
    assert all(result["answer"] for result in results)
    account = provider.account("m")
    assert account["ok"] == account["requests"] == DOCUMENTS + QUESTIONS, "one call for each"
    assert provider.refused("m") == 0, "the provider refused none"
    worst = account["worst-window"]["requests"]
    assert worst <= RPM, f"{worst} calls in some 60 s, by the provider's own count"
    # Late enough, and not by much: neither waited for what the other had given back long ago.
    took = account["last-admission"] - account["first-admission"]
    assert 60.0 < took < 150.0, f"{took} s"
