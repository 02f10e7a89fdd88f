"""One quota in several processes: forked, spawned, and sent to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: What a program has at its top, before its processes are made: a quota that was used already.
MODULE = """
import gc, multiprocessing, os, sys, threading, time
import tidegate

MODEL = "openai:m"
LIMITS = {MODEL: tidegate.Limits(rpm=6_000, itpm=100_000)}

def call(quota):
    with quota.admit(MODEL, tokens=1, max_output=1) as permit:
        permit.usage(input=1, output=1)

def until_used(quota, *expected, within=30):
    end, seen = time.monotonic() + within, None
    while seen != expected:
        assert time.monotonic() < end, seen
        # A busy machine answers late, and hears late how a call has ended.
        try:
            seen = tuple(quota.inspect(MODEL)[name] for name in ("requests", "input"))
        except ConnectionError:
            pass
"""

FORKS = """
call(quota)
children = []
for number in range(8):
    child = os.fork()
    if child == 0:
        if number % 2:
            call(quota)
        else:
            thread = threading.Thread(target=call, args=(quota,))
            thread.start()
            thread.join()
        # With what runs at exit, and without.
        sys.exit(0) if number % 4 < 2 else os._exit(0)
    children.append(child)
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
until_used(quota, 9, 9)
"""

PERMITS = """
admission = quota.admit(MODEL, tokens=500, max_output=1)
with admission as permit:
    child = os.fork()
    if child == 0:
        try:
            admission.__exit__(None, None, None)
        except RuntimeError as error:
            assert "another process" in str(error)
            del admission, permit
            gc.collect()
            call(quota)
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    until_used(quota, 2, 501)
    permit.usage(input=70, output=1)
until_used(quota, 2, 71)
"""

POOLS = """
import program

if __name__ == "__main__":
    quota = tidegate.Quota(sys.argv[1], LIMITS, key_prefix=sys.argv[2])
    call(quota)
    for way in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context(way).Pool(2) as pool:
            pool.map(program.call, [quota] * 2, chunksize=1)
    calls = 1 + 2 * len(multiprocessing.get_all_start_methods())
    until_used(quota, calls, calls)
"""

MADE = "quota = tidegate.Quota(sys.argv[1], LIMITS, key_prefix=sys.argv[2])\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.parametrize("script", [MADE + FORKS, MADE + PERMITS, POOLS], ids=["forks", "permits", "pools"])
def test_processes_made_from_one_another_share_a_quota(script: str, redis: str, prefix: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(MODULE)
    (tmp_path / "main.py").write_text(f"{MODULE}{script}")
    subprocess.run([sys.executable, "main.py", redis, prefix], cwd=tmp_path, check=True, timeout=180)
