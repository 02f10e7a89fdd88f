from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

VENDORS: list[str]

_Headers = Sequence[tuple[str, str]]

@final
class Pending:
    def wait(self) -> Any: ...
    def then(self, callback: Callable[[], object]) -> None: ...
    def take(self) -> Any: ...
    def cancel(self) -> None: ...

@final
class Permit:
    def sent(self) -> None: ...
    def used(self, uncached_input: int, cache_read: int, cache_write: int, output: int) -> Pending: ...
    def release(self) -> Pending: ...
    def keep_charged(self) -> Pending: ...
    def unused(self) -> Pending: ...
    def listened(self, listener: Listener, before: int) -> Pending: ...

@final
class Refusal:
    kind: str
    message: str
    may_pass: bool
    wait: float
    delay: float
    ticket: tuple[int, int] | None

@final
class Failure:
    kind: str
    message: str
    may_pass: bool
    retry_after: float | None
    delay: float
    @staticmethod
    def read(vendor: str, status: int, headers: _Headers, body: bytes, before: int = 0) -> Failure | None: ...
    @staticmethod
    def no_reply(message: str, was_sent: bool, before: int = 0) -> Failure: ...

@final
class Asked:
    model: str
    input_tokens: int
    max_output_tokens: int
    template: int
    @staticmethod
    def read(path: str, body: bytes) -> Asked | None: ...

@final
class Listener:
    def __new__(cls, vendor: str, status: int, headers: _Headers) -> Listener: ...
    def hear(self, piece: bytes) -> None: ...
    def is_over(self) -> bool: ...

@final
class Caller:
    def __new__(
        cls,
        quota: Quota,
        model: str,
        *,
        vendor: str,
        base_url: str | None,
        key: str | None,
        lane: str | None,
        tenant: str | None,
    ) -> Caller: ...
    def ask(self, body: bytes) -> Pending: ...
    def stop(self) -> None: ...

@final
class Quota:
    def __new__(
        cls,
        *,
        redis: str | None,
        models: Sequence[Mapping[str, object]],
        lanes: Sequence[tuple[str, float, float]],
        key_prefix: str,
        max_slot_wait: float,
        jitter: float,
        pause_ttl: float,
        base_backoff: float,
        max_backoff: float,
        max_quota_wait: float,
    ) -> Quota: ...
    def admit(
        self,
        model: str,
        name: str | None,
        *,
        tokens: int,
        max_output: int,
        lane: str | None,
        tenant: str | None,
        template: int,
        ticket: tuple[int, int] | None,
        max_wait: float | None,
    ) -> Pending: ...
    def inspect(self, model: str) -> Pending: ...
    def keep_alive(self, worker: str) -> Pending: ...
