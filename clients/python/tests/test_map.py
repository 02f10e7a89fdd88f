"""Many prompts from one line, before the provider's stand-in."""

from __future__ import annotations

import asyncio
import builtins
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Simulator

import tidegate

RPM = 180
#: As strict as a provider can be.
STRICT = f'mean-output-tokens = 20\noutput-spread = 0.0\n[models.m]\nrpm = {RPM}\nalgorithm = "sliding-window"\n'
#: Nothing binds.
WIDE: dict[str, Any] = {"rpm": 60_000, "tpm": 100_000_000}


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("TIDEGATE_CONFIG", "TIDEGATE_REDIS__URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    monkeypatch.chdir(tmp_path)


def questions(count: int) -> list[Any]:
    return [f"Number {number} is a number of its own." for number in range(count)]


def test_200_prompts_keep_a_limit_and_their_order(simulator: Callable[[str], Simulator]) -> None:
    provider = simulator(STRICT)
    prompts = questions(200)
    prompts[7] = None
    prompts[70] = "A prompt that is far too long. " * 300_000
    limits = {"rpm": RPM, "tpm": 200_000, "max_output_tokens": 64}
    began = time.monotonic()
    answers = asyncio.run(tidegate.map(prompts, model="openai:m", base_url=f"{provider.url}/v1", **limits))
    took = time.monotonic() - began
    account = provider.account("m")
    assert (account["ok"], account["requests"], provider.refused("m")) == (198, 198, 0)
    assert 55 < took < 100, f"{took} s: {RPM} may go in a minute, and the others after it"
    for number, answer in enumerate(answers):
        if number not in (7, 70):
            assert f"Number {number} is" in str(answer)
    assert isinstance(answers[7], TypeError)
    assert isinstance(answers[70], tidegate.CallFailed) and answers[70].kind == "TooLarge"


def test_what_an_earlier_cell_has_used_is_known(simulator: Callable[[str], Simulator]) -> None:
    url = f"{simulator(STRICT).url}/v1"

    async def cells() -> None:
        for _ in range(2):
            await tidegate.map(questions(20), model="openai:m", base_url=url, rpm=RPM)

    asyncio.run(cells())
    assert tidegate._map._quota("openai:m", None, None, url, {"rpm": RPM}).inspect("openai:m")["requests"] == 40


def test_processes_share_a_limit_by_redis(simulator: Callable[[str], Simulator], redis: str, prefix: str) -> None:
    url = f"{simulator(STRICT).url}/v1"
    line = f"tidegate.map(['Question?'] * 20, model='openai:m', base_url='{url}', redis='{redis}', rpm={RPM})"
    script = f"import asyncio, tidegate; print(len(asyncio.run({line})))"
    environment = {"TIDEGATE_REDIS__KEY_PREFIX": prefix, "OPENAI_API_KEY": "sk-x"}
    begun = [
        subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE) for _ in range(3)
    ]
    assert [process.communicate(timeout=60)[0] for process in begun] == [b"20\n"] * 3
    quota = tidegate.Quota(redis, {"openai:m": tidegate.Limits(rpm=RPM)}, key_prefix=prefix)
    assert quota.inspect("openai:m")["requests"] == 60


def test_a_fleets_configuration_is_enough(
    simulator: Callable[[str], Simulator], redis: str, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = simulator('mean-output-tokens = 20\n[[refused-keys]]\nkey = "sk-x"\n')
    (tmp_path / "tidegate.toml").write_text(
        f'[redis]\nurl = "{redis}"\nkey-prefix = "{prefix}"\n'
        f'[providers.mine]\nkind = "openai"\nbase-url = "{provider.url}/v1"\napi-key-env = "MINE"\n'
        f'[providers.other]\nkind = "openai"\nbase-url = "{provider.url}/v1"\napi-key-file = "key"\n'
        '[models."mine:m"]\nrpm = 600\n[models."other:m"]\nrpm = 600\n'
    )
    monkeypatch.setenv("MINE", "sk-mine")
    answers = asyncio.run(tidegate.map(questions(5), model="mine:m", instructions="Be brief."))
    assert all(isinstance(answer, str) for answer in answers)
    assert tidegate.Quota.from_config("tidegate.toml").inspect("mine:m")["requests"] == 5
    with pytest.raises(ValueError, match="providers.other.api-key-file is not read here"):
        asyncio.run(tidegate.map(questions(1), model="other:m"))


def test_a_refused_key_says_so_at_once(simulator: Callable[[str], Simulator]) -> None:
    provider = simulator('[[refused-keys]]\nkey = "sk-x"\n')
    began = time.monotonic()
    answers = asyncio.run(tidegate.map(questions(30), model="openai:m", base_url=f"{provider.url}/v1", **WIDE))
    assert {answer.kind for answer in answers if isinstance(answer, tidegate.CallFailed)} == {"Unauthorized"}
    assert all(isinstance(answer, Exception) for answer in answers)
    assert time.monotonic() - began < 10


def test_what_may_pass_is_asked_again(simulator: Callable[[str], Simulator]) -> None:
    provider = simulator('mean-output-tokens = 20\n[[faults]]\nkind = "reset-before"\nrate = 0.3\n')
    quota = tidegate.Quota(None, {"openai:m": tidegate.Limits(rpm=6_000)}, base_backoff=0.1)
    answers = asyncio.run(
        tidegate.map(questions(20), model="openai:m", base_url=f"{provider.url}/v1", quota=quota, errors="raise")
    )
    assert all(answers) and provider.account("m")["requests"] > 20
    assert provider.account("m")["ok"] == 20, "each was bought once"


def test_where_nobody_listens_it_gives_up() -> None:
    quota = tidegate.Quota(None, {"openai:m": tidegate.Limits(rpm=6_000)}, base_backoff=0.01, max_backoff=0.1)
    asked: dict[str, Any] = {"model": "openai:m", "base_url": "http://127.0.0.1:9/v1", "quota": quota}
    answers = asyncio.run(tidegate.map(questions(3), **asked))
    kinds = {answer.kind for answer in answers if isinstance(answer, tidegate.CallFailed)}
    assert kinds and kinds <= {"Transient", "Overloaded"}, answers


def test_an_answer_that_is_cut_is_none(simulator: Callable[[str], Simulator]) -> None:
    provider = simulator("mean-output-tokens = 100\noutput-spread = 0.0\n")
    asked: dict[str, Any] = {"model": "openai:m", "base_url": f"{provider.url}/v1", "max_output_tokens": 5}
    long = ["The tide comes in and goes out again. " * 50]
    (answer,) = asyncio.run(tidegate.map(long, **asked, **WIDE))
    assert isinstance(answer, tidegate.CallFailed) and answer.kind == "Truncated"
    with pytest.raises(tidegate.CallFailed, match="raise max_output_tokens"):
        asyncio.run(tidegate.map(long * 3, **asked, errors="raise", **WIDE))


def test_cancelled_it_leaves_no_call(simulator: Callable[[str], Simulator]) -> None:
    provider = simulator(f'latency = {{ base = "30s" }}\n{STRICT}')

    async def broken_off() -> None:
        call = tidegate.map(questions(100), model="openai:m", base_url=f"{provider.url}/v1", concurrent=10)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(call, 2)
        assert len(asyncio.all_tasks()) == 1
        asked = provider.account("m")["requests"]
        await asyncio.sleep(1)
        assert provider.account("m")["requests"] == asked == 10

    asyncio.run(broken_off())


def test_ctrl_c_ends_a_script(simulator: Callable[[str], Simulator]) -> None:
    provider = simulator('latency = { base = "30s" }\n')
    line = f"tidegate.map(['Question?'] * 9, model='openai:m', base_url='{provider.url}/v1', concurrent=4, progress=False)"
    script = f"import asyncio, tidegate; asyncio.run({line})"
    process = subprocess.Popen(
        [sys.executable, "-c", script], env={"OPENAI_API_KEY": "sk-x"}, stderr=subprocess.PIPE
    )
    end = time.monotonic() + 30
    while provider.asked("m") < 4:
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=10)
    assert process.returncode != 0 and b"KeyboardInterrupt" in told
    assert provider.asked("m") == 4


@pytest.mark.parametrize("has_tqdm", [True, False])
def test_how_far_it_is(
    simulator: Callable[[str], Simulator],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    has_tqdm: bool,
) -> None:
    provider = simulator("mean-output-tokens = 20\n")
    if has_tqdm:
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    asked: dict[str, Any] = {"model": "openai:m", "base_url": f"{provider.url}/v1", **WIDE}
    asyncio.run(tidegate.map([*questions(3), 5], **asked))
    last = capsys.readouterr().err.rstrip().split("\r")[-1]
    assert ("4/4" in last and "failed=1" in last) if has_tqdm else last == "4 of 4 prompts, 1 failed"
    asyncio.run(tidegate.map(questions(3), **asked, progress=False))
    assert capsys.readouterr().err == ""


def test_what_is_missing_is_named() -> None:
    def fault(**given: Any) -> str:
        with pytest.raises((ValueError, TypeError)) as raised:
            asyncio.run(tidegate.map(**{"prompts": ["?"], "model": "openai:m", **given}))
        return str(raised.value)

    assert "rpm=500" in fault()
    assert "state its base_url" in fault(model="mine:m", rpm=1)
    assert "OPENAI" in fault(api_key_env="OPENAI_OTHER", rpm=1)
    assert "rqm" in fault(rqm=1)
    assert "list of texts" in fault(prompts="What is it?", rpm=1)
    assert builtins.map is not tidegate.map
