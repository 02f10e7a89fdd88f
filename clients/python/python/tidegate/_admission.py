"""An admitted call, from its leave to its settlement."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ._errors import CallFailed, Refused, causes
from ._pending import awaited
from ._tidegate import Failure, Listener, Pending, Refusal
from ._tidegate import Permit as _Permit

#: Raised before a connection stands: nothing was asked. By name, because there are several httpx; the last are botocore's.
_UNSENT = frozenset(
    "ConnectError ConnectTimeout PoolTimeout UnsupportedProtocol ConnectionRefusedError"
    " EndpointConnectionError ConnectTimeoutError ProxyConnectionError".split()
)


class Permit:
    """Permission for one call. Report its use with `usage` or `answered`: otherwise all that was reserved stays charged."""

    def __init__(self, model: str, vendor: str, rust: _Permit) -> None:
        self.model = model
        self.vendor = vendor
        self._rust = rust
        self._usage: tuple[int, int, int, int] | None = None
        self._listener: Listener | None = None
        #: What the provider's error meant, once the call is settled.
        self.failure: Failure | None = None

    def usage(self, *, input: int, output: int, cache_read: int = 0, cache_write: int = 0) -> None:
        """The call used so many tokens; ``input`` is without those of a cache."""
        self._usage = (input, cache_read, cache_write, output)

    def answered(self, answer: Any) -> None:
        """The same by an answer: of a vendor's SDK, of ``httpx`` or ``requests``, or as JSON."""
        status, headers = 200, []
        if hasattr(answer, "status_code"):
            status, headers = answer.status_code, list(answer.headers.items())
            body = answer.content
        elif hasattr(answer, "model_dump"):
            body = json.dumps(answer.model_dump(mode="json")).encode()
        elif isinstance(answer, (bytes, bytearray)):
            body = bytes(answer)
        else:
            body = json.dumps(answer).encode()
        self._hear(status, headers, body)
        failure = Failure.read(self.vendor, status, headers, body)
        if failure is not None:
            raise CallFailed(failure)

    def _hear(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self._listener = Listener(self.vendor, status, headers)
        self._listener.hear(body)

    def _failed(self, error: BaseException) -> Pending | None:
        """How the call ends that failed so."""
        for cause in causes(error):
            reply = getattr(cause, "response", None)
            if reply is not None and hasattr(reply, "status_code"):
                try:
                    body = reply.content
                except Exception:  # A streamed reply that was not read.
                    body = b""
                self._hear(reply.status_code, list(reply.headers.items()), body)
                return None
            if type(cause).__name__ in _UNSENT:
                return self._rust.unused()
        return None

    def _end(self, error: BaseException | None, before: int = 0) -> Pending:
        if error is not None and self._usage is None and self._listener is None:
            ended = self._failed(error)
            if ended is not None:
                return ended
        if self._usage is not None:
            return self._rust.used(*self._usage)
        if self._listener is not None:
            return self._rust.listened(self._listener, before)
        return self._rust.keep_charged()


class Admission:
    """What ``Quota.admit`` gives: to be entered with ``with`` or ``async with``, once."""

    def __init__(self, model: str, vendor: str, ask: Callable[[], Pending]) -> None:
        self._model = model
        self._vendor = vendor
        self._ask = ask
        self._permit: Permit | None = None

    def _admitted(self, answer: object) -> Permit:
        if isinstance(answer, Refusal):
            raise Refused(answer, self._model)
        assert isinstance(answer, _Permit)
        # From here on the provider may be asked.
        answer.sent()
        self._permit = Permit(self._model, self._vendor, answer)
        return self._permit

    def _end(self, error: BaseException | None) -> Pending | None:
        permit, self._permit = self._permit, None
        return permit._end(error) if permit is not None else None

    async def __aenter__(self) -> Permit:
        return self._admitted(await awaited(self._ask()))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pending = self._end(error)
        if pending is not None:
            await awaited(pending, breaks_off=False)

    def __enter__(self) -> Permit:
        return self._admitted(self._ask().wait())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pending = self._end(error)
        if pending is not None:
            pending.wait()
