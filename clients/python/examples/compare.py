"""The same calls twice: with the SDK's own retries, and with ``tidegate.limit``.

    tidegate simulator --port 8089 --config simulator.toml   # [models.m] rpm = 600, algorithm = "sliding-window"
    python compare.py http://127.0.0.1:8089 --calls 700 --rpm 600 --redis redis://127.0.0.1
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
import urllib.request

import openai

import tidegate


async def all_at_once(client: openai.AsyncOpenAI, calls: int) -> int:
    """How many were answered."""

    async def ask(number: int) -> bool:
        messages = [{"role": "user", "content": f"What is {number} times {number}?"}]
        try:
            await client.chat.completions.create(model="m", max_completion_tokens=50, messages=messages)
        except openai.APIError:
            return False
        return True

    return sum(await asyncio.gather(*(ask(number) for number in range(calls))))


def account(url: str) -> tuple[int, int]:
    with urllib.request.urlopen(f"{url}/account") as reply:
        model = json.load(reply)["models"]["m"]
    return model["requests"], sum(model["refused"].values())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--calls", type=int, default=700)
    parser.add_argument("--rpm", type=int, default=600)
    parser.add_argument("--redis")
    given = parser.parse_args()
    quota = tidegate.Quota(given.redis, {"openai:m": tidegate.Limits(rpm=given.rpm)})

    def measured(name: str, client: openai.AsyncOpenAI) -> None:
        urllib.request.urlopen(urllib.request.Request(f"{given.url}/account/reset", method="POST")).close()
        began = time.monotonic()
        answered = asyncio.run(all_at_once(client, given.calls))
        took, (calls, refused) = time.monotonic() - began, account(given.url)
        print(f"{name}: {answered} of {given.calls} answered, {calls} calls, {refused} of them 429s, {took:.1f} s")

    plain = {"base_url": f"{given.url}/v1", "api_key": "sk-x"}
    measured("with tidegate", tidegate.limit(openai.AsyncOpenAI(**plain), quota))
    # The provider's window is empty again.
    time.sleep(61)
    measured("the SDK's own retries", openai.AsyncOpenAI(**plain))


if __name__ == "__main__":
    main()
