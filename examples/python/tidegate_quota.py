"""Shares an LLM quota with tidegate's workers, or with any program that speaks `lua/README.md`.

Needs Python 3.9, `resp.py` beside it and nothing else. One `Quota` is one model on one Redis; threads may share it.

    quota = Quota("redis://127.0.0.1", "openai:gpt-6-mini", Limits(requests=500, combined=200_000))
    permit = quota.admit("invoice-17:attempt-1", input_tokens=1_200, max_output_tokens=400)
    answer = call_the_provider()
    permit.settle(answer.input_tokens, answer.output_tokens)
"""

from __future__ import annotations

import math
import random
import re
import struct
import time
import zlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Mapping, NamedTuple, Optional, Sequence

from resp import Redis

LUA = Path(__file__).resolve().parents[2] / "lua"
INCLUDE = re.compile(r'^--- @include "(.+)"$', re.MULTILINE)
GRANTED, WAIT, PAUSED, NEVER, EXHAUSTED, NO_PLAN = 1, 2, 3, 4, 5, 6
RELEASED, SETTLED = 0, 1
DIMENSIONS = ("requests", "input", "output", "tokens")
HOLDS = ("gate", *DIMENSIONS, "in_flight", "turn", "probe", "requests a day", "tokens a day", "lane", *DIMENSIONS)


@dataclass(frozen=True)
class Limits:
    """What a provider allows, as it states it; 0 is no limit. All programs that share a model state the same limits. Times in seconds.

    Limits a minute, `concurrent`, `margin` and `burst` make the first plan of a fleet that has none; a plan in force stands."""

    requests: int = 0
    input: int = 0
    output: int = 0
    combined: int = 0
    concurrent: int = 0
    requests_per_day: int = 0
    tokens_per_day: int = 0
    day_offset: float = 0.0
    margin: float = 0.98
    window: float = 60.5
    burst: float = 2.5
    """How much may go at once, as the time that it takes at an even pace."""
    lease: float = 120.0

    def pack(self, shares: Sequence[tuple[float, float]], began: float = 0.0) -> bytes:
        """The quota block: seven numbers, then share and ceiling of each lane in the order of the lanes' numbers."""
        return pack(
            *map(micros, (self.window, max(self.lease, 1.5 * self.window))),
            *(self.requests_per_day, self.tokens_per_day, micros(self.day_offset)),
            *(zlib.crc32(repr(self).encode()) + 1, micros(began)),
            *(part for share in shares for part in share),
        )

    def first_plan(self, version: int, clock: int) -> bytes:
        """A plan without a policy: the stated limits at an even pace. Nothing is taken out of the log."""
        window, plan = micros(self.window), []
        for limit in (self.requests, self.input, self.output, self.combined):
            most = max(1, int(limit * self.margin)) if limit else 0
            plan += [most / window, min(1.0, self.burst / self.window) * most, most, most, 0]
        return pack(version, 0, clock, window, self.concurrent, *plan)


class Ticket(NamedTuple):
    """Keeps a caller's turn. Any client may redeem it."""

    epoch: int
    position: int


class Answer(NamedTuple):
    """The reply of `reserve`; `wait` and `turn` in microseconds."""

    outcome: int
    wait: int
    hold: int
    deficit: int
    epoch: int
    position: int
    ratio: int
    output: int
    cached: int = 0
    turn: int = 0


class Refused(Exception):
    """No quota. Unless it never fits, come back after `wait` seconds with the ticket."""

    def __init__(self, answer: Answer, wait: float) -> None:
        self.outcome, self.wait, self.hold = answer.outcome, wait, HOLDS[answer.hold]
        self.ticket = Ticket(answer.epoch, answer.position) if answer.epoch else None
        super().__init__({
            WAIT: f"no quota for {wait:.1f} s: {self.hold} holds the call",
            PAUSED: f"the gate of the model is closed for {wait:.1f} s",
            NEVER: f"the call never fits: {answer.deficit} {self.hold} is the most that is ever free; make it smaller",
            EXHAUSTED: f"nothing more for {wait:.0f} s: {self.hold if answer.hold else 'the account'} is spent; pay or wait",
        }[answer.outcome])


class Quota:
    """One model's quota, shared through Redis: `redis://` or `rediss://`, with user, password and database if need be."""

    def __init__(
        self,
        url: str,
        model: str,
        limits: Limits,
        lanes: Optional[Mapping[str, tuple[float, float]]] = None,
        prefix: str = "tidegate",
        jitter: float = 30.0,
        pause_ttl: float = 300.0,
        began: float = 0.0,
    ) -> None:
        """`began`, in seconds since 1970: with other limits than an older program's, this one's plan takes its place; 0 takes nobody's."""
        self.clock = 0  # for tests: microseconds that the scripts take for the time; 0 for the server's
        self.jitter, self.pause_ttl = jitter, pause_ttl
        self._lease, self._stem = micros(max(limits.lease, 1.5 * limits.window)), f"{prefix}:v1:{{{model}}}:"
        self._redis, self._expected = Redis(url), {}  # template -> (real over estimated input, expected output)
        self._began = began
        self._limits, self._stated, self._numbers_key = limits, lanes or {"batch": (1.0, 1.0)}, f"{prefix}:v1:lanes"

    def admit(self, reservation: str, *, lane: str = "batch", tenant: str = "default", input_tokens: int = 0,
              max_output_tokens: int = 0, template: int = 0, ticket: Optional[Ticket] = None, max_wait: float = 10.0) -> Permit:
        """Waits for at most `max_wait` seconds, in which nothing is held. `reservation` names this attempt and no other."""
        until = time.monotonic() + max_wait
        while True:
            known = self._expected.get(template)
            amounts = self._amounts(known, input_tokens, max_output_tokens)
            answer = self.reserve(reservation, amounts, lane, tenant, template, ticket, curious=not known)
            self._remember(template, answer.ratio, answer.output)
            if answer.outcome == GRANTED:
                return Permit(self, reservation, input_tokens, template)
            wait = answer.wait / 1e6
            sleep = min(0.95 * wait, 60.0) if answer.outcome == WAIT and wait > 2.0 else wait
            if answer.outcome == PAUSED:
                sleep = wait = wait + random.uniform(0.0, self.jitter)
            if answer.outcome in (NEVER, EXHAUSTED) or time.monotonic() + wait > until:
                raise Refused(answer, wait)
            ticket = Ticket(answer.epoch, answer.position) if answer.epoch else ticket
            time.sleep(sleep)

    def reserve(self, reservation: str, amounts: tuple[int, int, int, int], lane: str = "batch", tenant: str = "default",
                template: int = 0, ticket: Optional[Ticket] = None, curious: bool = False) -> Answer:
        """Asks once. `amounts` are requests, input, output and combined tokens."""
        call = pack(self._lanes[lane], *(ticket or (0, 0)), *amounts, curious, self.clock)
        keys = (f"learned:{template:016x}", f"tenants:{self._lanes[lane]}")
        while True:
            answer = Answer(*self._run("reserve-7", keys, reservation, call, self._quota, tenant))
            if answer.outcome != NO_PLAN:
                return answer
            # Another program may write its plan first; then this one is not written, and that one holds.
            numbers, _, _, known, *_ = self._run("inspect-8", ("gate", "log", "known"), pack(self.clock), self._quota)
            plan = self._limits.first_plan(int(unpack(numbers)[12]), self.clock)
            self._run("plan-7", ("log", "known"), plan, self._quota, known)

    def settle(self, reservation: str, mode: int, amounts: tuple[int, int, int, int], template: int = 0,
               sample: tuple[int, int, int] = (0, 0, 0), signal: int = 0, pause: float = 0.0, reason: str = "") -> list[int]:
        """Ends a reservation; `Permit` is the convenient way. Once is enough, twice is harmless."""
        ends = pack(mode, *amounts, 0, 1, *sample, signal, micros(pause), micros(self.pause_ttl), self.clock, *[0] * 17)
        answer = self._run("settle-9", (f"learned:{template:016x}", "gate", "log", "known"), reservation, ends, self._quota, reason)
        self._remember(template, *answer[2:4])
        return answer[:6]  # what follows is the policy's task; a caller that ignores it leaves it to the next

    def pause(self, seconds: float, reason: str) -> float:
        """Closes the gate for the whole fleet, or opens it with 0; says for how many seconds it is closed now."""
        call = pack(micros(seconds), micros(self.pause_ttl), self.clock)
        return self._run("pause-6", ("gate",), reason, call, self._quota)[0] / 1e6

    def renew(self, reservation: str) -> bool:
        """Keeps a call that has outlived the window among the calls in flight for one more lease."""
        keys = [self._stem + "leases"]
        return self._redis.script(script("renew-1"), keys, [reservation, pack(self._lease, self.clock)]) == [1]

    def inspect(self) -> dict[str, Any]:
        """Pause in seconds with its reason, reservations, and limit, use and what is held of it for each dimension."""
        packed, reason, *_ = self._run("inspect-8", ("gate", "log", "known"), pack(self.clock), self._quota)
        numbers = unpack(packed)
        seen = {"pause": numbers[1] / 1e6, "reason": reason.decode().partition("|")[2], "reservations": int(numbers[3])}
        for at, name in zip(range(15, 43, 7), DIMENSIONS):
            rate, capacity, window, most, drawn, used, held = numbers[at:at + 7]
            seen[name] = {"limit": math.floor(most), "used": math.ceil(used), "held": math.ceil(held)}
        seen["in_flight"] = {"limit": int(numbers[10]), "used": int(numbers[9]), "held": 0}
        return seen

    def _run(self, name: str, more: tuple[str, ...], *arguments: Any) -> list[Any]:
        keys = [self._stem + key for key in ("ledger", "entries", "state", "leases", "day", *more)]
        return self._redis.script(script(name), keys, arguments)

    @cached_property
    def _lanes(self) -> dict[str, int]:
        """The number that each lane keeps in Redis."""
        return {name: int(kept[0]) for name, kept in self._known.items()}

    @cached_property
    def _quota(self) -> bytes:
        shares = [(0.0, 1.0)] * max(self._lanes.values())
        for name, (number, share, ceiling) in self._known.items():
            shares[int(number) - 1] = self._stated.get(name, (float(share), float(ceiling)))
        return self._limits.pack(shares, self._began)

    @cached_property
    def _known(self) -> dict[str, list[str]]:
        """Number, share and ceiling of each lane, of other programs' lanes too."""
        words = [str(word) for name in sorted(self._stated) for word in (name, *self._stated[name], 0)]
        reply = self._redis.script(script("lanes-1"), [self._numbers_key], [str(30 * 86_400), *words])
        return {name.decode(): kept.decode().split() for name, kept in zip(reply[::2], reply[1::2])}

    def _amounts(self, known: Optional[tuple[float, int]], input_tokens: int, bound: int) -> tuple[int, int, int, int]:
        if known:
            return spent(math.ceil(input_tokens * known[0]), min(known[1], bound))
        return spent(input_tokens, -(-bound // 3))  # answers rarely use a third of their bound

    def _remember(self, template: int, ratio: int, output: int) -> None:
        if ratio:
            self._expected[template] = (ratio / 1e6, output)


@dataclass(frozen=True)
class Permit:
    """Leave for one provider call. Never ended, it stays charged until it leaves the window: right after a time-out."""

    quota: Quota
    reservation: str
    estimated_input: int
    template: int

    def settle(self, input_tokens: int, output_tokens: int) -> None:
        """The call used so much; the rest comes back at once, and calls like it are estimated better."""
        sample = (self.estimated_input, input_tokens, output_tokens)
        self.quota.settle(self.reservation, SETTLED, spent(input_tokens, output_tokens), self.template, sample)

    def release(self) -> None:
        """The request never left."""
        self.quota.settle(self.reservation, RELEASED, (0, 0, 0, 0), self.template)

    def refused(self, pause: float, reason: str = "429") -> None:
        """The provider refused for a rate: the gate closes for the whole fleet for `pause` seconds, and one call goes first after."""
        self.quota.settle(self.reservation, SETTLED, spent(0, 0), self.template, signal=1, pause=pause, reason=reason)

    def overloaded(self) -> None:
        """The provider is overloaded: fewer calls in flight for a while."""
        self.quota.settle(self.reservation, SETTLED, spent(0, 0), self.template, signal=2)

    def renew(self) -> None:
        """Call this every third of the lease once the call has outlived the window."""
        self.quota.renew(self.reservation)


@lru_cache(maxsize=None)
def script(name: str) -> bytes:
    """A script's text: the parts that it names, and then its own."""
    own = (LUA / f"{name}.lua").read_text(encoding="utf-8")
    parts = ((LUA / f"{part}.lua").read_text(encoding="utf-8") for part in INCLUDE.findall(own))
    return "".join((*parts, own)).encode()


def pack(*numbers: float) -> bytes:
    """Little-endian doubles."""
    return struct.pack(f"<{len(numbers)}d", *numbers)


def unpack(packed: bytes) -> tuple[float, ...]:
    """The numbers in such bytes."""
    return struct.unpack(f"<{len(packed) // 8}d", packed)


def micros(seconds: float) -> int:
    """Whole microseconds, the protocol's unit of time."""
    return round(seconds * 1e6)


def spent(input_tokens: int, output_tokens: int) -> tuple[int, int, int, int]:
    """Amounts of one request with so many tokens."""
    return (1, input_tokens, output_tokens, input_tokens + output_tokens)
