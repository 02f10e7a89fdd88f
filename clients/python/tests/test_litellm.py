"""LiteLLM before the door and behind it, with the settings of its page: who waits, and what the provider sees."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Door, Simulator, ended, free_port, until_open
from test_pages import Page

CALLS, RPM = 150, 100
MODEL = "gpt-6-mini"
PROVIDER = f'mean-output-tokens = 20\n[models."{MODEL}"]\nrpm = {RPM}\nalgorithm = "sliding-window"\n'
LIMITS = f"rpm = {RPM}"
#: A weak one is refused.
LITELLM_KEY = f"sk-{secrets.token_hex(32)}"


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("DOOR_KEY", Door.KEY),
        ("LITELLM_KEY", LITELLM_KEY),
        ("LITELLM_MASTER_KEY", LITELLM_KEY),
        ("OPENAI_API_KEY", "sk-x"),
        ("LITELLM_LOCAL_MODEL_COST_MAP", "True"),
    ):
        monkeypatch.setenv(name, value)


@pytest.fixture
def proxy(large: Path, environment: None, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Starts LiteLLM's proxy with a configuration; its base URL."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(config: str) -> str:
        file, port = tmp_path / f"litellm-{len(processes)}.yaml", free_port()
        file.write_text(config)
        command = [large / "litellm", "--config", file, "--port", str(port), "--host", "127.0.0.1"]
        with file.with_suffix(".log").open("wb") as log:
            processes.append(subprocess.Popen(command, stdout=log, stderr=log))
        until_open(port, processes[-1], 120)
        return f"http://127.0.0.1:{port}/v1"

    yield start
    for process in processes:
        ended(process)


def test_litellm(
    large: Path, proxy: Callable[[str], str], simulator: Callable[[str], Simulator], door: Callable[..., Door]
) -> None:
    page = (ROOT / "docs/quick-starts/litellm.md").read_text("utf-8")
    front = page.split("```yaml\n")[1].split("```")[0]
    start = (ROOT / "docs/starts/litellm.md").read_text("utf-8")
    behind, section = (start.split(f">{name} <<'END'\n")[1].split("END\n")[0] for name in ("litellm.yaml", "tidegate.toml"))
    providers = {way: simulator(PROVIDER) for way in ("alone", "sdk", "proxy", "behind")}
    doors = {way: door(f"{providers[way].url}/v1", MODEL, LIMITS) for way in ("sdk", "proxy")}

    # As it comes, without tidegate.
    vendor = f"      api_base: {providers['alone'].url}/v1\n      api_key: os.environ/OPENAI_API_KEY\n"
    plain = f"model_list:\n  - model_name: {MODEL}\n    litellm_params:\n      model: openai/{MODEL}\n{vendor}"
    by_proxy = {"model": f"openai/{MODEL}", "api_key": LITELLM_KEY, "num_retries": 0}
    asked: dict[str, dict[str, Any]] = {"alone": {**by_proxy, "api_base": proxy(plain)}}

    # In front.
    called: dict[str, Any] = {}
    block = Page("litellm", {}).blocks[0].replace("http://127.0.0.1:8080", doors["sdk"].url)
    exec(block.replace("import litellm", "").replace("litellm.completion", "dict"), called)
    asked["sdk"] = called["answer"]
    asked["proxy"] = {**by_proxy, "api_base": proxy(front.replace("http://127.0.0.1:8080", doors["proxy"].url))}

    # Behind: the page's section, at a door of its own.
    own = f"      api_base: {providers['behind'].url}/v1\n      max_retries: 0"
    last = proxy(behind.replace("      max_retries: 0", own))
    section = section.replace("http://127.0.0.1:4000/v1", last)
    started = door("http://127.0.0.1:9/v1", "other", LIMITS, section)
    at_door = {"api_base": f"{started.url}/v1", "api_key": Door.KEY, "model": f"openai/litellm:{MODEL}"}
    asked["behind"] = {**at_door, "max_retries": 2}

    def came(way: str) -> dict[str, Any]:
        command = [large / "python", ROOT / "clients/python/tests/litellm_calls.py", str(CALLS), json.dumps(asked[way])]
        told = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=400, env=os.environ)
        found: dict[str, Any] = json.loads(told.stdout.splitlines()[-1])
        return {**found, "calls": providers[way].asked(MODEL), "refused": providers[way].refused(MODEL)}

    # Two at a time: where more starve, calls come to the provider later than they were counted.
    with ThreadPoolExecutor(2) as pool:
        figures = dict(zip(asked, pool.map(came, asked)))
    for way, figure in figures.items():
        print(f"{way}: {figure}")
    for way in ("sdk", "proxy", "behind"):
        figure = figures[way]
        assert figure["came"] == {"answered": CALLS}, figures
        # Behind, LiteLLM holds calls up under load: some come later than they were counted.
        assert figure["refused"] <= (0.05 * CALLS if way == "behind" else 0), figures
        assert figure["calls"] == CALLS + figure["refused"], figures
        assert figure["seconds"] < 1.5 * CALLS / RPM * 60, figures
