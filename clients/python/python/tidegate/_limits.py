"""What providers allow, by the rules and the names of ``tidegate.toml``."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Any

from . import _tidegate

#: Vendors whose API, errors and charging rules are known.
VENDORS = frozenset(_tidegate.VENDORS)

#: As the program reads them.
_UNITS = {
    name: length
    for names, length in (
        ("us usec", 1e-6),
        ("ms msec millis", 1e-3),
        ("s sec secs second seconds", 1.0),
        ("m min mins minute minutes", 60.0),
        ("h hr hrs hour hours", 3600.0),
        ("d day days", 86400.0),
    )
    for name in names.split()
}


def seconds(value: float | str) -> float:
    """A time in seconds, or as in the configuration: ``"250ms"``, ``"30s"``, ``"1m 30s"``."""
    if not isinstance(value, str):
        return float(value)
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*([a-z]+)\s*", value)
    if not parts or "".join(number + unit for number, unit in parts) != re.sub(r"\s", "", value):
        raise ValueError(f'"{value}" is no time; write it as "250ms", "30s" or "5m"')
    unknown = [unit for _, unit in parts if unit not in _UNITS]
    if unknown:
        raise ValueError(f'"{value}": "{unknown[0]}" is no unit of time; write ms, s, m, h or d')
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """One model's limits, as the provider states them for your account. Every program that shares a
    model must state the same."""

    #: Requests a minute.
    rpm: int | None = None
    #: Requests a second: calls then go evenly.
    rps: int | None = None
    #: Input and output tokens a minute, counted together.
    tpm: int | None = None
    #: Input tokens a minute.
    itpm: int | None = None
    #: Output tokens a minute.
    otpm: int | None = None
    #: Requests a day.
    rpd: int | None = None
    #: Input and output tokens a day, counted together.
    tpd: int | None = None
    #: Requests at once.
    concurrent: int | None = None
    #: When the provider's day begins, after 00:00 UTC.
    day_begins: float | str = 0.0
    #: How much of a minute may go at once; learned if not stated.
    burst: float | str | None = None
    #: How the provider counts: ``unknown`` or ``token-bucket``.
    algorithm: str | None = None
    #: The part of each limit that is used.
    margin: float | None = None
    #: The window in which the limits hold.
    window: float | str | None = None
    #: By how much output counts in ``tpm``, where the vendor's own figure is another.
    output_weight: float | None = None

    def as_model(self, name: str, vendor: str | None, endpoint: str | None, group: str | None) -> dict[str, Any]:
        """As the limiter takes it."""
        fields: dict[str, Any] = {it.name: getattr(self, it.name) for it in dataclasses.fields(self)}
        for time in ("day_begins", "burst", "window"):
            if fields[time] is not None:
                fields[time] = seconds(fields[time])
        return {**fields, "name": name, "vendor": vendor, "endpoint": endpoint, "group": group}

    @classmethod
    def of_section(cls, name: str, section: Mapping[str, Any]) -> Limits:
        """From a model's section of ``tidegate.toml``."""
        known = {it.name for it in dataclasses.fields(cls)}
        # Those say how a model is asked by tidegate's own workers, and what that costs.
        others = {"price", "effort", "parameters", "enqueued-batch-tokens"}
        stated = {key.replace("-", "_"): value for key, value in section.items() if key not in others}
        unknown = sorted(set(stated) - known)
        if unknown:
            key = unknown[0].replace("_", "-")
            raise ValueError(f'models."{name}".{key} is not known to this version of the package; update it')
        return cls(**stated)

    @property
    def states_any(self) -> bool:
        """Whether it says what the provider allows."""
        limits = (self.rpm, self.rps, self.tpm, self.itpm, self.otpm, self.rpd, self.tpd, self.concurrent)
        return any(limit is not None for limit in limits)


@dataclasses.dataclass(frozen=True)
class Lane:
    """A class of traffic."""

    #: Guaranteed, whatever the other lanes do.
    share: float
    #: The most it may borrow when the others are idle.
    burst: float = 1.0


#: Those of tidegate's own configuration.
LANES: Mapping[str, Lane] = {"interactive": Lane(0.6), "standard": Lane(0.3), "batch": Lane(0.1)}


def lanes(stated: Mapping[str, Mapping[str, float]]) -> dict[str, Lane]:
    """The lanes of a configuration: those of its own that it does not name share what the named ones
    leave."""
    named = {name: Lane(it.get("share", 0.0), it.get("burst", 1.0)) for name, it in stated.items()}
    unnamed = {name: lane for name, lane in LANES.items() if name not in named}
    left = max(1.0 - sum(lane.share for lane in named.values()), 0.0)
    whole = sum(lane.share for lane in unnamed.values())
    if not named or not unnamed:
        return {**unnamed, **named}
    # As the program rounds, for all that share a quota must come to the same.
    part = left / whole
    others = {name: Lane(math.floor(lane.share * part * 1e4 + 1e-6) / 1e4) for name, lane in unnamed.items()}
    return {**others, **named}
