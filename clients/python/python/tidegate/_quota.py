"""The limiter."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ._admission import Admission
from ._limits import LANES, VENDORS, Lane, Limits, lanes, seconds
from ._pending import awaited
from ._tidegate import Quota as _Quota


class Quota:
    """A limiter over some models. All with the same Redis and the same models are one fleet, in whatever language and
    process; it may be made before a fork, and be sent to other processes.

    :param redis: as in ``tidegate.toml``: ``redis://``, ``rediss://``, cluster and sentinel; without
        it the limits are each process's alone.
    :param models: each model as ``provider:model``, with its limits.
    :param vendors: whose API a provider speaks, where its name is none of a vendor's.
    :param endpoints: base URLs of providers that are not the vendor's own host.
    :param groups: models that share one limit: name of the quota to models.
    :param lane_shares: classes of traffic, each with its guaranteed part of the limits.
    :param max_slot_wait: a longer wait is refused by calls with ``max_wait`` and by
        ``tidegate.temporal``; in seconds or as ``"10s"``.
    """

    def __init__(
        self,
        redis: str | None,
        models: Mapping[str, Limits],
        *,
        vendors: Mapping[str, str] | None = None,
        endpoints: Mapping[str, str] | None = None,
        groups: Mapping[str, list[str]] | None = None,
        lane_shares: Mapping[str, Lane] = LANES,
        key_prefix: str = "tidegate",
        max_slot_wait: float | str = 10.0,
        jitter: float | str = 30.0,
        pause_ttl: float | str = 300.0,
        base_backoff: float | str = 10.0,
        max_backoff: float | str = 60.0,
        max_quota_wait: float | str = 300.0,
    ) -> None:
        vendors, endpoints = dict(vendors or {}), dict(endpoints or {})
        group_of = {model: name for name, members in (groups or {}).items() for model in members}
        stated = []
        for name, limits in models.items():
            provider = name.partition(":")[0]
            vendor = vendors.get(provider, provider if provider in VENDORS else None)
            group = group_of.get(name)
            if group is not None and not limits.states_any:
                shared = (models[other] for other in (groups or {})[group] if other in models)
                limits = next((other for other in shared if other.states_any), limits)
            stated.append(limits.as_model(name, vendor, endpoints.get(provider), group))
        self.max_slot_wait = seconds(max_slot_wait)
        self._vendors = vendors
        #: How each provider is reached, in the words of ``tidegate.toml``.
        self._sections: Mapping[str, Mapping[str, Any]] = {
            name: {"base-url": url} for name, url in endpoints.items()
        }
        self._given: dict[str, Any] = {
            "redis": redis,
            "models": stated,
            "lanes": [(name, lane.share, lane.burst) for name, lane in lane_shares.items()],
            "key_prefix": key_prefix,
            "max_slot_wait": self.max_slot_wait,
            "jitter": seconds(jitter),
            "pause_ttl": seconds(pause_ttl),
            "base_backoff": seconds(base_backoff),
            "max_backoff": seconds(max_backoff),
            "max_quota_wait": seconds(max_quota_wait),
        }
        self._made = {os.getpid(): _Quota(**self._given)}

    @property
    def _rust(self) -> _Quota:
        """That of this process: a fork has none of its parent's threads."""
        made = self._made.get(os.getpid())
        return made or self._made.setdefault(os.getpid(), _Quota(**self._given))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": {}}

    def __deepcopy__(self, memo: object) -> Quota:
        """Two limiters in one process would allow twice as much."""
        return self

    def __copy__(self) -> Quota:
        return self

    @classmethod
    def from_config(cls, path: str | os.PathLike[str] = "tidegate.toml", **changes: Any) -> Quota:
        """The limiter of the fleet that this configuration is for. Of the environment, only
        ``TIDEGATE_REDIS__URL`` and ``TIDEGATE_REDIS__KEY_PREFIX`` are looked at."""
        if sys.version_info >= (3, 11):
            import tomllib
        else:
            import tomli as tomllib
        config = tomllib.loads(Path(path).read_text("utf-8"))
        redis, gate, worker = (config.get(name, {}) for name in ("redis", "gate", "worker"))
        providers = config.get("providers", {})
        pools = sorted(name for name, it in providers.items() if "pool" in it)
        if pools:
            raise ValueError(
                f"providers.{pools[0]} is a pool, whose members this package cannot choose among;"
                " state the limits of one member to Quota() instead"
            )
        models = {
            name: Limits.of_section(name, section) for name, section in config.get("models", {}).items()
        }
        given: dict[str, Any] = {
            "vendors": {name: it["kind"] for name, it in providers.items() if "kind" in it},
            "endpoints": {name: it["base-url"] for name, it in providers.items() if "base-url" in it},
            "groups": {name: it["models"] for name, it in config.get("quotas", {}).items()},
            "key_prefix": os.environ.get("TIDEGATE_REDIS__KEY_PREFIX", redis.get("key-prefix", "tidegate")),
            "max_slot_wait": worker.get("max-slot-wait", "10s"),
        }
        if "lanes" in config:
            given["lane_shares"] = lanes(config["lanes"])
        for key in ("jitter", "pause-ttl", "base-backoff", "max-backoff", "max-quota-wait"):
            if key in gate:
                given[key.replace("-", "_")] = gate[key]
        url = os.environ.get("TIDEGATE_REDIS__URL", redis.get("url", "redis://127.0.0.1:6379"))
        made = cls(url, models, **{**given, **changes})
        made._sections = providers
        return made

    def section(self, provider: str) -> Mapping[str, Any]:
        """What is stated of how a provider is reached, by the names of ``tidegate.toml``."""
        return self._sections.get(provider, {})

    def vendor(self, model: str) -> str:
        """Whose API a model's provider speaks."""
        provider = model.partition(":")[0]
        return self._vendors.get(provider, provider if provider in VENDORS else "openai")

    def admit(
        self,
        model: str,
        *,
        tokens: int,
        max_output: int,
        lane: str | None = None,
        tenant: str | None = None,
        template: int = 0,
        ticket: Sequence[int] | None = None,
        max_wait: float | None = None,
        name: str | None = None,
    ) -> Admission:
        """Leave for one call, for ``with`` and ``async with``.

        :param tokens: estimated input; the error of the estimate is learned.
        :param max_output: the call's own bound on its output.
        :param lane: the class of traffic, ``batch`` if not stated.
        :param tenant: whose call it is: the tenants of a lane get equal parts.
        :param template: calls with the same number are alike: what they use is learned together.
        :param ticket: of an earlier refusal: keeps the turn.
        :param max_wait: seconds; a longer wait raises ``Refused``. Without it, the turn is waited for
            however long it takes, if Redis has ever answered this process.
        :param name: names this attempt and no other; asked again after a lost reply, it costs nothing.
        """
        pending = lambda: self._rust.admit(  # noqa: E731
            model,
            name,
            tokens=tokens,
            max_output=max_output,
            lane=lane,
            tenant=tenant,
            template=template,
            # A broker may have turned it into a list.
            ticket=None if ticket is None else (ticket[0], ticket[1]),
            max_wait=max_wait,
        )
        return Admission(model, self.vendor(model), pending)

    def inspect(self, model: str) -> dict[str, Any]:
        """What is used of a model's limits in the window, and why its gate is closed; ``ConnectionError`` while
        Redis is away."""
        seen: dict[str, Any] = self._rust.inspect(model).wait()
        return seen

    async def keep_alive(self, worker: str) -> None:
        """Counts this process among those that share the limits while Redis is away, until it is
        cancelled: run it as a task beside the work."""
        await awaited(self._rust.keep_alive(worker))
