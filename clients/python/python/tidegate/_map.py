"""Answers to many prompts, asked from this process."""

from __future__ import annotations

import asyncio
import functools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ._errors import CallFailed
from ._limits import VENDORS, Limits
from ._pending import awaited
from ._progress import Progress
from ._quota import Quota
from ._tidegate import Caller, Failure

#: A text, or the messages of a conversation: ``{"role": "user", "content": "…"}``.
Prompt = str | Sequence[Mapping[str, str]]

#: So many prompts stand in the queue at once: with a fleet's Redis others stand in it, too.
AT_ONCE = 1_000

#: What a provider's section of ``tidegate.toml`` says that is read here.
_READ = frozenset({"kind", "base-url", "api-key-env"})


async def map(
    prompts: Iterable[Prompt],
    *,
    model: str,
    instructions: str | None = None,
    max_output_tokens: int = 4_096,
    quota: Quota | None = None,
    redis: str | None = None,
    base_url: str | None = None,
    kind: str | None = None,
    api_key_env: str | None = None,
    lane: str | None = None,
    tenant: str | None = None,
    errors: Literal["return", "raise"] = "return",
    progress: bool = True,
    **limits: Any,
) -> list[str | Exception]:
    """The answers to ``prompts``, in their order, each call in its turn.

        answers = await tidegate.map(questions, model="openai:gpt-4.1-mini", rpm=500, tpm=200_000)

    A prompt that fails leaves its exception in its answer's place: ``CallFailed``, whose ``kind`` says what it
    met, or ``TypeError`` and ``ValueError`` for what is no prompt. What may pass (a refusal for quota, an
    overload, a broken connection) is asked again before that, as tidegate's workers do. Cancelled, it leaves
    no call running.

    :param model: ``provider:model``; the key comes from the vendor's own environment variable.
    :param instructions: the system prompt of all.
    :param max_output_tokens: the bound of each answer; one that is cut there fails as ``Truncated``.
    :param quota: the limiter that calls go through. Without it one is made of ``limits``, once for the process; without
        those the configuration's is taken: ``TIDEGATE_CONFIG``, else ``tidegate.toml`` in the current folder.
    :param redis: where a fleet shares the ``limits``; else ``TIDEGATE_REDIS__URL``; else they are this process's alone.
    :param base_url: the provider's address, where it is not the vendor's own.
    :param kind: whose API it speaks, where its name is none of a vendor's; OpenAI's if not stated.
    :param api_key_env: the environment variable that holds the key, where it is not the vendor's own.
    :param errors: ``"raise"`` raises the first failure, and ends the others.
    :param progress: shows how far it is, with ``tqdm`` where that is installed.
    :param limits: as ``Limits`` takes them: ``rpm=``, ``tpm=``, ``concurrent=``, …
    """
    if isinstance(prompts, str):
        raise TypeError("prompts are many: give a list of texts")
    if errors not in ("return", "raise"):
        raise ValueError(f'errors is "{errors}"; write "return" or "raise"')
    asked = list(prompts)
    quota = quota or _quota(model, redis, kind, base_url, limits)
    caller = _caller(quota, model, kind, base_url, api_key_env, lane, tenant)
    answers: list[str | Exception] = [""] * len(asked)
    to_do = iter(enumerate(asked))
    shown = Progress(len(asked), progress)

    async def work() -> None:
        for number, prompt in to_do:
            try:
                answers[number] = await _ask(caller, _body(model, prompt, instructions, max_output_tokens))
            except (CallFailed, TypeError, ValueError) as error:
                if errors == "raise":
                    raise
                answers[number] = error
            shown.one_more(isinstance(answers[number], Exception))

    tasks = [asyncio.ensure_future(work()) for _ in range(max(min(AT_ONCE, len(asked)), 1))]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in ended:
            task.result()
    finally:
        caller.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        shown.close()
    return answers


async def _ask(caller: Caller, body: bytes) -> str:
    answer = await awaited(caller.ask(body))
    if isinstance(answer, Failure):
        raise CallFailed(answer)
    assert isinstance(answer, str)
    return answer


def _body(model: str, prompt: object, instructions: str | None, max_output_tokens: int) -> bytes:
    """As a request of Chat Completions; the caller says it in the vendor's words."""
    if isinstance(prompt, str):
        messages = [{"role": "user", "content": prompt}]
    elif isinstance(prompt, Sequence):
        messages = list(prompt)
    else:
        raise TypeError(f"a prompt is a text or a list of messages, and not {type(prompt).__name__}")
    if instructions is not None:
        messages.insert(0, {"role": "system", "content": instructions})
    body = {"model": model, "max_completion_tokens": max_output_tokens, "messages": messages}
    return json.dumps(body).encode()


def _quota(
    model: str, redis: str | None, kind: str | None, base_url: str | None, limits: Mapping[str, Any]
) -> Quota:
    """One for each process: what an earlier cell of a notebook has used is known to the next."""
    if limits:
        stated = os.environ.get("TIDEGATE_REDIS__URL")
        return _of_limits(model, redis or stated, kind, base_url, Limits(**limits))
    path = Path(os.environ.get("TIDEGATE_CONFIG") or "tidegate.toml")
    if not path.exists():
        raise ValueError(
            f"no limits of {model}: state your account's, such as rpm=500, tpm=200_000 (concurrent=8 where you know"
            " none), or a quota, or a configuration in TIDEGATE_CONFIG"
        )
    return _of_config(path.resolve(), path.stat().st_mtime_ns)


@functools.cache
def _of_limits(model: str, redis: str | None, kind: str | None, base_url: str | None, limits: Limits) -> Quota:
    provider = model.partition(":")[0]
    return Quota(
        redis,
        {model: limits},
        vendors={provider: kind} if kind else {},
        endpoints={provider: base_url} if base_url else {},
        key_prefix=os.environ.get("TIDEGATE_REDIS__KEY_PREFIX", "tidegate"),
    )


@functools.cache
def _of_config(path: Path, modified: int) -> Quota:
    return Quota.from_config(path)


def _caller(
    quota: Quota,
    model: str,
    kind: str | None,
    base_url: str | None,
    api_key_env: str | None,
    lane: str | None,
    tenant: str | None,
) -> Caller:
    provider = model.partition(":")[0]
    section = quota.section(provider)
    unread = sorted(set(section) - _READ)
    if unread:
        raise ValueError(f"providers.{provider}.{unread[0]} is not read here; ask {model} at the HTTP door, or in a batch")
    kind, base_url = kind or section.get("kind"), base_url or section.get("base-url")
    if base_url is None and provider not in VENDORS:
        raise ValueError(f'"{provider}" is the name of no vendor; state its base_url')
    return Caller(
        quota._rust,
        model,
        vendor=kind or quota.vendor(model),
        base_url=base_url,
        key=api_key_env or section.get("api-key-env"),
        lane=lane,
        tenant=tenant,
    )
