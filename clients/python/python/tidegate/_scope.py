"""What stands around a call: an activity's attempt, which keeps its turn and makes one call."""

from __future__ import annotations

import contextvars
import dataclasses
from typing import Any

from ._errors import Refused


@dataclasses.dataclass
class Scope:
    """One attempt at an activity."""

    #: Names the attempt, in the whole fleet.
    reservation: str
    #: A longer wait goes back to Temporal.
    max_wait: float
    #: Turns that an earlier attempt was given, by model.
    tickets: dict[str, tuple[int, int]]
    #: Refusals and faults of the attempts before.
    failures: int = 0
    calls: int = 0
    #: What ended the attempt, if it was the limiter or the provider.
    refusal: Refused | None = None
    failure: Any = None

    def name(self) -> str:
        """Names the next call of the attempt."""
        self.calls += 1
        return f"{self.reservation}/{self.calls}"

    def ticket(self, model: str) -> tuple[int, int] | None:
        """The turn that was given."""
        return self.tickets.get(model)

    def sent(self) -> None:
        """A call leaves: its turn is used."""
        self.tickets.clear()
        self.failure = None

    def refused(self, refused: Refused) -> None:
        """The call was not admitted."""
        self.refusal = refused
        self.tickets.clear()
        if refused.ticket is not None:
            self.tickets[refused.model] = refused.ticket

    def failed(self, failure: Any) -> None:
        """The provider refused or failed."""
        self.failure = failure


scope: contextvars.ContextVar[Scope | None] = contextvars.ContextVar("tidegate_scope", default=None)
