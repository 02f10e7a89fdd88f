"""Calls by LiteLLM's SDK, all at once, and what became of them as JSON.

Usage: litellm_calls.py CALLS NAMED: what each call is asked with, as JSON.
"""

import asyncio
import json
import sys
import time
from collections import Counter

import litellm

CALLS, NAMED = int(sys.argv[1]), json.loads(sys.argv[2])
litellm.suppress_debug_info = True


async def one(number):
    messages = [{"role": "user", "content": f"What is {number} times {number}?"}]
    try:
        answer = await litellm.acompletion(**{**NAMED, "messages": messages, "max_tokens": 50})
        return "answered" if answer.choices[0].message.content else "empty"
    except Exception as error:
        return type(error).__name__


async def main():
    began = time.monotonic()
    came = await asyncio.gather(*(one(number) for number in range(CALLS)))
    print(json.dumps({"came": Counter(came), "seconds": time.monotonic() - began}))


asyncio.run(main())
