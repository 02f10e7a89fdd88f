"""What can go wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ._tidegate import Failure, Refusal


class _Pickled(Exception):
    """Other processes raise it as it is: an ``Exception`` would be made from its message alone."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args), self.__dict__


def _restored(kind: type[_Pickled], args: tuple[Any, ...]) -> _Pickled:
    error = kind.__new__(kind, *args)
    error.args = args
    return error


class Refused(_Pickled):
    """A call was not admitted, and not made."""

    def __init__(self, refusal: Refusal, model: str) -> None:
        super().__init__(refusal.message)
        self.model = model
        #: ``QuotaWait``, ``QuotaExhausted``, ``TooLarge`` or ``InvalidInput``; while one call finds out about a provider that
        #: has failed or refused: ``Overloaded``, ``Unauthorized``, ``QuotaExhausted`` or ``InvalidRequest``.
        self.kind = refusal.kind
        #: Whether it is worth asking again.
        self.may_pass = refusal.may_pass
        #: Seconds until then.
        self.wait = refusal.wait
        #: Seconds until the next attempt, where something else dispatches it.
        self.delay = refusal.delay
        #: Keeps the turn: to be shown when asking again, from whatever process.
        self.ticket = refusal.ticket


class CallFailed(_Pickled):
    """A provider refused or failed, in its own words. Raised by ``tidegate.temporal``, ``tidegate.map`` and
    ``Permit.answered`` alone: elsewhere errors stay what they are."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        #: ``RateLimited``, ``Overloaded``, ``Transient``, ``QuotaExhausted``, ``Unauthorized``, …; of
        #: ``tidegate.map`` also ``Truncated``.
        self.kind = failure.kind
        #: Whether the same call may succeed later.
        self.may_pass = failure.may_pass
        #: Seconds that the provider wants to be left alone.
        self.retry_after = failure.retry_after
        #: Seconds until the next attempt.
        self.delay = failure.delay


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it was raised from: SDKs wrap what their transport raises."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
