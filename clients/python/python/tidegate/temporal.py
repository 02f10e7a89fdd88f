"""Activities of Temporal's Python SDK behind a quota.

With the interceptor every activity of a worker may use ``tidegate.limit(...)``, a transport, or
``admit`` below:

    Worker(client, task_queue="questions", activities=[ask], interceptors=[tidegate.temporal.Interceptor(quota)])
    # or, which also counts the worker among those that share the quota:
    Worker(client, task_queue="questions", activities=[ask], plugins=[tidegate.temporal.Plugin(quota)])

A near turn is waited for in place, under heartbeats. A far one goes back to Temporal as ``QuotaWait``,
with the delay of the next attempt, which keeps the turn: it travels in the heartbeat's details. What
a provider refuses becomes ``RateLimited``, ``Overloaded``, …, with the delay that it asks for; what no
retry mends is not retried. So Temporal's is the only retry there is. Let an activity make one call,
and give it a heartbeat time-out and a retry policy without a small ``maximum_attempts``.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar
from uuid import uuid4

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.plugin import SimplePlugin
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Worker, WorkerConfig
from temporalio.worker import Interceptor as _Interceptor

from ._admission import Permit
from ._errors import CallFailed, Refused, causes
from ._quota import Quota
from ._scope import Scope, scope
from ._tidegate import Failure

#: In the details of heartbeats, behind those of the activity's own.
_KEY = "tidegate"

#: Where the server does not say after which time-out it gives a worker up.
_TIMEOUT = timedelta(seconds=40)

#: Statuses and faults that make an error of a vendor's SDK one of the provider's.
_NO_REPLY = frozenset({"APIConnectionError", "APITimeoutError", "TransportError"})

Result = TypeVar("Result")


def _begin(quota: Quota) -> Scope:
    info, state = activity.info(), {}
    for detail in info.heartbeat_details:
        if isinstance(detail, dict) and isinstance(detail.get(_KEY), dict):
            state = detail[_KEY]
    tickets = {model: tuple(ticket) for model, ticket in state.get("tickets", {}).items()}
    started = int(info.started_time.timestamp() * 1000)
    # Attempts are counted anew when an activity is reset: when it started is part of its name.
    name = f"{info.workflow_run_id}#{info.activity_id}.{info.attempt}@{started}"
    return Scope(name, quota.max_slot_wait, tickets, failures=int(state.get("failures", 0)))


def _beat(within: Scope) -> None:
    tickets = {model: list(ticket) for model, ticket in within.tickets.items()}
    with contextlib.suppress(RuntimeError):
        activity.heartbeat({_KEY: {"tickets": tickets, "failures": within.failures}})


async def _beating(within: Scope) -> None:
    timeout = activity.info().heartbeat_timeout or _TIMEOUT
    while True:
        await asyncio.sleep(timeout.total_seconds() * 3 / 8)
        _beat(within)


def _application_error(within: Scope, error: Exception) -> ApplicationError | None:
    """What the end of an attempt means to Temporal; None for the activity's own errors."""
    for cause in causes(error):
        if isinstance(cause, ApplicationError):
            return None
        if isinstance(cause, Refused):
            within.refused(cause)
            benign = ApplicationErrorCategory.BENIGN if cause.kind == "QuotaWait" else ApplicationErrorCategory.UNSPECIFIED
            return ApplicationError(
                str(cause),
                type=cause.kind,
                non_retryable=not cause.may_pass,
                next_retry_delay=timedelta(seconds=cause.delay) if cause.may_pass else None,
                category=benign,
            )
    failure = _failure(within, error)
    if failure is None:
        return None
    within.failures += 1
    return ApplicationError(
        failure.message if isinstance(failure, Failure) else str(failure),
        type=failure.kind,
        non_retryable=not failure.may_pass,
        next_retry_delay=timedelta(seconds=failure.delay) if failure.may_pass else None,
    )


def _failure(within: Scope, error: Exception) -> Failure | CallFailed | None:
    if within.failure is not None:
        told: Failure = within.failure
        return told
    for cause in causes(error):
        if isinstance(cause, CallFailed):
            return cause
        reply = getattr(cause, "response", None)
        if reply is not None and hasattr(reply, "status_code"):
            vendor = type(cause).__module__.partition(".")[0]
            vendor = vendor if vendor in ("openai", "anthropic") else "openai"
            with contextlib.suppress(Exception):
                headers, body = list(reply.headers.items()), reply.content
                return Failure.read(vendor, reply.status_code, headers, body, within.failures)
        if any(base.__name__ in _NO_REPLY for base in type(cause).__mro__):
            return Failure.no_reply(f"{type(cause).__name__}: {cause}", True, within.failures)
    return None


async def _run(quota: Quota, work: Callable[[], Awaitable[Result]]) -> Result:
    within = _begin(quota)
    token, beating = scope.set(within), asyncio.ensure_future(_beating(within))
    try:
        return await work()
    except Exception as error:
        meant = _application_error(within, error)
        # The next attempt finds its turn in the last heartbeat.
        _beat(within)
        if meant is None:
            raise
        raise meant from error
    finally:
        beating.cancel()
        scope.reset(token)


def limited(quota: Quota) -> Callable[[Callable[..., Awaitable[Result]]], Callable[..., Awaitable[Result]]]:
    """A decorator for one ``async`` activity, below ``@activity.defn``, which does for it what the
    interceptor does for all."""

    def decorate(function: Callable[..., Awaitable[Result]]) -> Callable[..., Awaitable[Result]]:
        @functools.wraps(function)
        async def run(*arguments: Any, **named: Any) -> Result:
            return await _run(quota, lambda: function(*arguments, **named))

        return run

    return decorate


class Interceptor(_Interceptor):
    """For ``Worker(interceptors=[...])``: all ``async`` activities of the worker share the quota.
    Activities in threads pass it by: they may use ``with quota.admit(...)``."""

    def __init__(self, quota: Quota) -> None:
        self._quota = quota

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Inbound(next, self._quota)


class Plugin(SimplePlugin):
    """For ``Worker(plugins=[...])``, or for a client whose workers all share the quota: the interceptor, and
    ``quota.keep_alive`` as long as the worker runs."""

    def __init__(self, quota: Quota) -> None:
        super().__init__("tidegate.Plugin")
        self._quota = quota

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        config = super().configure_worker(config)
        config["interceptors"] = [*(config.get("interceptors") or ()), Interceptor(self._quota)]
        return config

    async def run_worker(self, worker: Worker, next: Callable[[Worker], Awaitable[None]]) -> None:
        alive = asyncio.ensure_future(self._quota.keep_alive(f"{worker.task_queue}-{uuid4().hex}"))
        try:
            await super().run_worker(worker, next)
        finally:
            alive.cancel()
            await asyncio.gather(alive, return_exceptions=True)


class _Inbound(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, quota: Quota) -> None:
        super().__init__(next)
        self._quota = quota

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        if not asyncio.iscoroutinefunction(input.fn):
            return await super().execute_activity(input)
        return await _run(self._quota, lambda: super(_Inbound, self).execute_activity(input))


@contextlib.asynccontextmanager
async def admit(quota: Quota, model: str, *, tokens: int, max_output: int, **options: Any) -> AsyncIterator[Permit]:
    """``quota.admit`` in an activity with the interceptor or the decorator: in the turn that the
    attempt before was given, and no longer in place than ``max_slot_wait``."""
    within = scope.get()
    if within is None:
        raise RuntimeError("tidegate.temporal.admit wants the interceptor, or @tidegate.temporal.limited")
    admission = quota.admit(
        model,
        tokens=tokens,
        max_output=max_output,
        ticket=within.ticket(model),
        max_wait=within.max_wait,
        name=within.name(),
        **options,
    )
    async with admission as permit:
        within.sent()
        yield permit
