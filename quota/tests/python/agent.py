"""Runs the steps of the test in `../python.rs` with the Python client: reads one line for each and answers with one."""

import sys

from tidegate_quota import HOLDS, RELEASED, SETTLED, Limits, Quota, Ticket, spent

OUTCOMES = ("", "granted", "wait", "paused", "never", "exhausted")
ENDS = ("unknown", "done", "before")


def main() -> None:
    url, prefix, combined = sys.argv[1:]
    quota = Quota(url, "test:model", Limits(combined=int(combined), margin=1.0, window=60.0, burst=60.0), prefix=prefix)
    for line in sys.stdin:
        verb, *rest = line.split()
        print(answer(quota, verb, rest), flush=True)


def answer(quota: Quota, verb: str, rest: "list[str]") -> str:
    if verb == "at":
        quota.clock = int(rest[0])
        return "ok"
    if verb == "reserve":
        tokens, epoch, position = map(int, rest[1:])
        reply = quota.reserve(rest[0], (1, tokens, 0, tokens), ticket=Ticket(epoch, position))
        hold = HOLDS[reply.hold] if reply.outcome == 2 else "-"
        return f"{OUTCOMES[reply.outcome]} {reply.wait} {hold} {reply.deficit} {reply.epoch} {reply.position}"
    if verb == "settle":
        return ENDS[quota.settle(rest[0], SETTLED, spent(int(rest[1]), 0))[0]]
    if verb == "release":
        return ENDS[quota.settle(rest[0], RELEASED, (0, 0, 0, 0))[0]]
    if verb == "refused":
        quota.settle(rest[0], SETTLED, spent(0, 0), signal=1, pause=float(rest[1]), reason="429")
        return "ok"
    if verb == "inspect":
        seen = quota.inspect()
        dimensions = [seen[name] for name in ("requests", "input", "output", "tokens", "in_flight")]
        numbers = [dimension[what] for dimension in dimensions for what in ("limit", "used", "held")]
        return " ".join(map(str, [round(seen["pause"] * 1e6), seen["reservations"], *numbers]))
    raise SystemExit(f"what is {verb}?")


main()
