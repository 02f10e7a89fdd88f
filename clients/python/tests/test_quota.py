"""The limiter without any service but the tests' own."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import tidegate
from tidegate._limits import LANES, lanes, seconds

MODEL = "openai:m"


def quota(**limits: int) -> tidegate.Quota:
    return tidegate.Quota(None, {MODEL: tidegate.Limits(**limits)}, jitter=0, vendors={"openai": "gemini"})


def used(limiter: tidegate.Quota) -> tuple[int, int]:
    seen = limiter.inspect(MODEL)
    return seen["requests"], seen["input"]


def test_what_a_call_says_is_what_it_is_charged() -> None:
    limiter = quota(rpm=6_000, itpm=100_000)
    with limiter.admit(MODEL, tokens=500, max_output=50) as permit:
        assert used(limiter) == (1, 500)
        permit.usage(input=70, output=7)
    assert used(limiter) == (1, 70)
    with limiter.admit(MODEL, tokens=500, max_output=50) as permit:
        permit.answered({"usageMetadata": {"promptTokenCount": 30, "candidatesTokenCount": 4}})
    assert used(limiter) == (2, 100)


def test_without_a_word_all_stays_charged_and_a_call_that_never_left_is_free() -> None:
    limiter = quota(rpm=6_000, itpm=100_000)
    with pytest.raises(ValueError), limiter.admit(MODEL, tokens=500, max_output=50):
        raise ValueError("after it was sent")
    held = used(limiter)[1]
    assert held > 0

    class ConnectError(Exception):
        """As those of httpx are called."""

    with pytest.raises(ConnectError), limiter.admit(MODEL, tokens=500, max_output=50):
        raise ConnectError
    assert used(limiter)[1] == held


def test_an_error_with_a_reply_says_what_it_means() -> None:
    limiter = quota(rpm=6_000, itpm=100_000)

    class StatusError(Exception):
        response = SimpleNamespace(status_code=429, headers={"retry-after": "30"}, content=b"{}")

    with pytest.raises(StatusError), limiter.admit(MODEL, tokens=5, max_output=5):
        raise StatusError
    assert limiter.inspect(MODEL)["reason"] == "rate_limited"
    with pytest.raises(tidegate.Refused) as refused, limiter.admit(MODEL, tokens=5, max_output=5, max_wait=0):
        pass
    assert refused.value.kind == "QuotaWait"
    assert 1 < refused.value.wait <= 30


def test_a_far_turn_is_told_and_kept() -> None:
    limiter = quota(rpm=1)
    with limiter.admit(MODEL, tokens=1, max_output=1) as permit:
        permit.usage(input=1, output=1)
    ask = {"tokens": 1, "max_output": 1, "max_wait": 0}
    with pytest.raises(tidegate.Refused) as first, limiter.admit(MODEL, **ask):
        pass
    assert first.value.may_pass and first.value.ticket is not None
    told = pickle.loads(pickle.dumps(first.value))
    assert (str(told), told.kind, told.wait) == (str(first.value), first.value.kind, first.value.wait)
    with pytest.raises(tidegate.Refused) as again, limiter.admit(MODEL, ticket=list(told.ticket), **ask):
        pass
    assert again.value.ticket == first.value.ticket


def test_what_never_fits_and_what_is_unknown_say_so() -> None:
    limiter = quota(rpm=60, itpm=1_000)
    with pytest.raises(tidegate.Refused, match="make it smaller") as never, limiter.admit(
        MODEL, tokens=50_000, max_output=1
    ):
        pass
    assert (never.value.kind, never.value.may_pass) == ("TooLarge", False)
    with pytest.raises(tidegate.Refused, match="openai:other"), limiter.admit("openai:other", tokens=1, max_output=1):
        pass
    with pytest.raises(ValueError, match="provider:model"), limiter.admit("other", tokens=1, max_output=1):
        pass
    with pytest.raises(ValueError, match="no limit"):
        tidegate.Quota(None, {MODEL: tidegate.Limits()})


def test_a_copy_is_the_same_limiter() -> None:
    limiter = quota(rpm=60)
    assert copy.copy(limiter) is copy.deepcopy({"quota": limiter})["quota"] is limiter


def test_a_redis_that_was_never_reached_is_told() -> None:
    limiter = tidegate.Quota("redis://127.0.0.1:9", {MODEL: tidegate.Limits(rpm=60)}, max_slot_wait="1s")
    with pytest.raises(tidegate.Refused, match="127.0.0.1:9: Connection refused") as refused, limiter.admit(
        MODEL, tokens=1, max_output=1
    ):
        pass
    assert (refused.value.kind, refused.value.may_pass) == ("QuotaWait", True)
    answers = asyncio.run(tidegate.map(["?"] * 3, model=MODEL, quota=limiter, base_url="http://127.0.0.1:9/v1"))
    assert ["Connection refused" in str(answer) for answer in answers] == [True] * 3
    with pytest.raises(ConnectionError, match="127.0.0.1:9"):
        limiter.inspect(MODEL)


def test_a_wait_that_is_cancelled_takes_nothing() -> None:
    limiter = quota(rpm=600)

    async def crowd() -> None:
        async def call() -> None:
            async with limiter.admit(MODEL, tokens=1, max_output=1) as permit:
                permit.usage(input=1, output=1)

        tasks = [asyncio.ensure_future(call()) for _ in range(40)]
        await asyncio.sleep(0.2)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(crowd())
    before = used(limiter)[0]
    assert 0 < before < 40
    time.sleep(0.5)
    assert used(limiter)[0] == before, "nobody asks any more"


def test_threads_and_loops_share_a_limiter() -> None:
    limiter = quota(rpm=6_000)
    done: list[int] = []

    def plain() -> None:
        with limiter.admit(MODEL, tokens=1, max_output=1) as permit:
            permit.usage(input=1, output=1)
            done.append(1)

    async def in_loop() -> None:
        async def one() -> None:
            async with limiter.admit(MODEL, tokens=1, max_output=1) as permit:
                permit.usage(input=1, output=1)
                done.append(1)

        await asyncio.gather(*(one() for _ in range(20)))

    threads = [threading.Thread(target=plain) for _ in range(10)]
    for thread in threads:
        thread.start()
    asyncio.run(in_loop())
    for thread in threads:
        thread.join()
    assert len(done) == 30 and used(limiter)[0] == 30


def test_times_and_lanes_are_those_of_the_configuration() -> None:
    assert [seconds(it) for it in ("250ms", "30s", "1m 30s", 5)] == [0.25, 30.0, 90.0, 5.0]
    for bad in ("", "30", "3 parsecs"):
        with pytest.raises(ValueError):
            seconds(bad)
    assert lanes({}) == dict(LANES)
    shared = lanes({"bulk": {"share": 0.5}})
    assert {name: lane.share for name, lane in shared.items()} == {
        "interactive": 0.3,
        "standard": 0.15,
        "batch": 0.05,
        "bulk": 0.5,
    }


def test_a_key_that_is_not_known_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match='models."openai:m".rpx is not known'):
        tidegate.Limits.of_section(MODEL, {"rpx": 1})


def test_a_fleets_own_file_is_read_or_refused(tmp_path: Path) -> None:
    file = tmp_path / "tidegate.toml"
    model = '[models."mine:m"]\nrpm = 240\nenqueued-batch-tokens = 1000\nday-begins = "8hours"\n'
    mine = '[providers.mine]\nkind = "openai"\nbase-url = "http://127.0.0.1:9/v1"\n'
    file.write_text(f"{model}{mine}")
    assert tidegate.Quota.from_config(file) is not None
    file.write_text(f'{model}{mine}[[providers.mine.pool]]\nname = "a"\napi-key-env = "A"\n')
    with pytest.raises(ValueError, match="providers.mine is a pool"):
        tidegate.Quota.from_config(file)
