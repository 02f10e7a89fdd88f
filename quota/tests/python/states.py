"""Asks the real scripts for the "Five states" of docs/limiter.md and prints what holds each call, and for how many seconds."""

import math
import sys

from tidegate_quota import HOLDS, Limits, Quota, pack, unpack

LIMIT, START, SECOND = 600_000, 1_790_000_000_000_000, 1_000_000


class State(Quota):
    def __init__(self, name: str, lanes: "dict[str, tuple[float, float]] | None" = None) -> None:
        super().__init__(sys.argv[1], name, Limits(combined=LIMIT, margin=1.0), lanes, prefix=sys.argv[2])
        self.at(0.0)

    def at(self, seconds: float) -> None:
        self.clock = START + round(seconds * SECOND)

    def plan(self, capacity: int, drawn: int, window: float = math.inf, horizon: int = 60) -> None:
        seen = unpack(self._run("inspect-8", ("gate", "log", "known"), pack(self.clock), self._quota)[0])
        head = (seen[12], 0, self.clock, horizon * SECOND, 0, *[0] * 15)
        limit = (LIMIT / 60 / SECOND, capacity, window, LIMIT, drawn - seen[15 + 3 * 7 + 4])
        assert self._run("plan-7", ("log", "known"), pack(*head, *limit), self._quota, b"")[0] == 1

    def comes(self, name: str, tokens: int = 20_000) -> str:
        answer = self.reserve(name, (1, tokens, 0, tokens))
        return "granted" if answer.outcome == 1 else f"{HOLDS[answer.hold]} {answer.wait / SECOND:.1f}"


one = State("one")
one.plan(150_000, 140_000)
two = State("two")
two.plan(300_000, 300_000, horizon=5)
waiting = [two.comes(f"w{number}") for number in range(3)]
two.plan(300_000, 290_000, horizon=5)
three = State("three")
three.plan(600_000, 0, window=LIMIT)
for second, tokens in ((5, 5_000), (8, 5_000), (10, 580_000)):
    three.at(second)
    assert three.comes(f"at-{second}", tokens) == "granted"
three.at(60)
three.plan(600_000, 0, window=LIMIT)
four = State("four", {"batch": (0.75, 1.0), "urgent": (0.25, 1.0)})
four.plan(300_000, 0)
four.at(290)
assert four.reserve("urgent", (1, 20_000, 0, 20_000), lane="urgent").outcome == 1
four.settle("urgent", 1, (1, 20_000, 0, 20_000))
four.at(300)
four.plan(300_000, 270_000)
five = State("five")
five.plan(300_000, 0)
five.comes("refused")
five.settle("refused", 1, (1, 0, 0, 0), signal=1, pause=4.0, reason="429")
five.at(1.5)
print(*(state.comes("new") for state in (one, two, three, four, five)), sep="\n")
five.at(4.5)
assert five.comes("first") == "granted"
five.at(4.7)
print(five.comes("second"))
