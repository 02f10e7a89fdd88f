"""Calls of LLM providers behind a quota that a whole fleet shares.

    quota = tidegate.Quota("redis://127.0.0.1", {"openai:gpt-4.1-mini": tidegate.Limits(rpm=500, tpm=200_000)})
    async with quota.admit("openai:gpt-4.1-mini", tokens=1_000, max_output=256) as permit:
        answer = await client.chat.completions.create(...)
        permit.answered(answer)

``tidegate.sdk`` limits the vendors' own SDKs and any ``httpx`` client; ``tidegate.temporal`` is for
activities; ``tidegate.map`` answers a list of prompts; ``tidegate.run`` starts tidegate's own batches, and
``tidegate.results`` reads what they left.
"""

from ._admission import Admission, Permit
from ._batch import Batch, follow, run
from ._errors import CallFailed, Refused
from ._limits import Lane, Limits
from ._map import map
from ._quota import Quota
from ._results import Results, results
from .sdk import AsyncTransport, Transport, limit

__all__ = [
    "Admission",
    "AsyncTransport",
    "Batch",
    "CallFailed",
    "Lane",
    "Limits",
    "Permit",
    "Quota",
    "Refused",
    "Results",
    "Transport",
    "follow",
    "limit",
    "map",
    "results",
    "run",
]
