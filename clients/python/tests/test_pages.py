"""What the quick starts show, run as it stands there: addresses alone are other ones."""

from __future__ import annotations

import ast
import asyncio
import importlib
import inspect
import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Door, Simulator, ended

RPM = 600
PROVIDER = f'mean-output-tokens = 20\n[models."gpt-6-mini"]\nrpm = {RPM}\nalgorithm = "sliding-window"\n'


_databases = itertools.count(1)


class Page:
    """A page, and where its addresses lead."""

    def __init__(self, name: str, addresses: dict[str, str], **names: Any) -> None:
        text = (ROOT / f"docs/quick-starts/{name}.md").read_text("utf-8")
        self.blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        self.addresses = addresses
        self.names = names

    def replaced(self, number: int) -> str:
        """A block with the addresses of the test."""
        code: str = self.blocks[number]
        for shown, real in self.addresses.items():
            code = code.replace(shown, real)
        return code

    def run(self, *numbers: int) -> dict[str, Any]:
        """Runs some of its blocks one after the other, in one loop; what they have named."""

        async def run() -> None:
            for number in numbers:
                compiled = compile(self.replaced(number), f"block {number}", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                made = eval(compiled, self.names)
                if inspect.isawaitable(made):
                    await made

        asyncio.run(asyncio.wait_for(run(), 180))
        return self.names


@pytest.fixture
def provider(simulator: Callable[[str], Simulator], monkeypatch: pytest.MonkeyPatch) -> Simulator:
    started = simulator(PROVIDER)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{started.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    monkeypatch.setenv("DOOR_KEY", Door.KEY)
    return started


@pytest.fixture
def addresses(redis: str, door: Callable[..., Door], provider: Simulator) -> dict[str, str]:
    """As the pages write them."""
    started = door(f"{provider.url}/v1", "gpt-6-mini", f'rpm = {RPM}\nburst = "1s"')
    # A database of each test's own: pages name no prefix.
    own = f"{redis}/{next(_databases)}"
    return {'"http://127.0.0.1:8080': f'"{started.url}', '"redis://127.0.0.1"': f'"{own}"'}


def answered(provider: Simulator, calls: int) -> None:
    account = provider.account("gpt-6-mini")
    assert (account["ok"], provider.refused("gpt-6-mini")) == (calls, 0)


def questions(count: int) -> list[str]:
    return [f"What is {number} times {number}?" for number in range(count)]


def test_langchain(addresses: dict[str, str], provider: Simulator) -> None:
    pytest.importorskip("langchain_openai")
    page = Page("langchain", addresses)
    named = page.run(0)
    assert named["answer"].content and all(answer.content for answer in named["answers"])
    answered(provider, 61)
    named["prompts"] = questions(20)
    assert all(answer.content for answer in page.run(1)["answers"])
    answered(provider, 81)
    assert named["quota"].inspect("openai:gpt-6-mini")["requests"] == 20


def test_a_vendors_sdk(redis: str, provider: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("boto3")
    pytest.importorskip("google.genai")
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", provider.url)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", provider.url)
    monkeypatch.setenv("GEMINI_API_KEY", "x")
    page = Page("python-sdk", {'"redis://127.0.0.1"': f'"{redis}/{next(_databases)}"'})
    named = page.run(0, 1)
    usage, seen = named["answer"]["usage"], named["quota"].inspect("bedrock:amazon.nova-lite-v1:0")
    assert named["answer"]["output"]["message"]["content"][0]["text"]
    assert (seen["requests"], seen["input"]) == (1, usage["inputTokens"])
    named = page.run(2)
    assert named["answer"].text and named["quota"].inspect("gemini:gemini-3-flash")["requests"] == 2


def test_pydantic_ai(addresses: dict[str, str], provider: Simulator) -> None:
    pytest.importorskip("pydantic_ai")
    named = Page("pydantic-ai", addresses).run(0, 1)
    assert isinstance(named["result"].output, named["Tide"])
    answered(provider, 2)
    assert named["quota"].inspect("openai:gpt-6-mini")["requests"] == 1


def test_celery(
    addresses: dict[str, str], provider: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("celery")
    pytest.importorskip("redis")
    page = Page("celery", addresses)
    (tmp_path / "questions.py").write_text(page.replaced(0) + page.replaced(1))
    monkeypatch.syspath_prepend(tmp_path)
    tasks = importlib.import_module("questions")
    command = [sys.executable, "-m", "celery", "-A", "questions", "worker", "--concurrency", "4"]
    with (tmp_path / "celery.log").open("wb") as log:
        worker = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log)
    try:
        asked = [task.delay(question) for task in (tasks.ask, tasks.ask_later) for question in questions(20)]
        assert all(one.get(timeout=60) for one in asked)
    finally:
        ended(worker)
    answered(provider, 40)


def test_a_list_of_prompts(addresses: dict[str, str], provider: Simulator) -> None:
    page = Page("python-map", {**addresses, "rpm=500": f'base_url="{provider.url}/v1", rpm=500'})
    named = page.run(0, 1)
    assert len(named["answers"]) == 200 and named["failed"] == []
    answered(provider, 200)
    conversation = [{"role": "user", "content": "What is a neap tide?"}]
    named["prompts"], named["answers"] = [conversation, 7], ["A tide.", TypeError("no prompt")]
    assert [prompt for prompt, _ in page.run(1)["failed"]] == [7]
    named["prompts"] = questions(20)
    assert all(isinstance(answer, str) for answer in page.run(2)["answers"])
    answered(provider, 220)


def test_airflow(
    large: Path,
    worker: Callable[[str, str], Path],
    provider: Simulator,
    temporal: str,
    prefix: str,
    tmp_path: Path,
) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / f"in/{number}.md").write_text(f"# Report {number}\n\nThe tide was {number} feet high.\n")
    worker(f"{provider.url}/v1", "rpm = 6000")
    dag = tmp_path / "dag.py"
    dag.write_text(Page("airflow", {}).blocks[0])
    places = {"source": f"{tmp_path.as_uri()}/in/", "output": f"{tmp_path.as_uri()}/out", "model": "openai:m"}
    told = subprocess.run(
        [large / "python", ROOT / "clients/python/tests/airflow_task.py", dag, prefix, json.dumps(places)],
        env={
            **os.environ,
            "AIRFLOW_HOME": str(tmp_path / "airflow"),
            "PYTHONPATH": str(ROOT / "clients/python/python"),
            "TEMPORAL_ADDRESS": temporal,
        },
        stdout=subprocess.PIPE,
        check=True,
        timeout=180,
    )
    came = json.loads(told.stdout.splitlines()[-1])
    assert came["ids"][0] == came["ids"][1], "a retry finds the batch that runs"
    assert (came["report"]["succeeded"], came["report"]["failed"]) == (3, 0), came
    assert provider.account("m")["requests"] == 3, "one batch ran"
    assert "openai:other" in came["failed"]
