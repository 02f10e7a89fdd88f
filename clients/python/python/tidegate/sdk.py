"""The vendors' own SDKs, and any ``httpx`` client, behind a quota.

    client = tidegate.limit(OpenAI(), quota)

Each call of a model waits for its turn, and is settled by what the provider answers: tokens, limits in
headers, and errors, of which a 429 closes the gate for the whole fleet. Answers that come piece by
piece are charged when they end (OpenAI's tell their use with ``stream_options={"include_usage": True}``;
else what was reserved stays charged). The SDK's own retries are switched off: in an activity Temporal
retries, elsewhere whatever you like, and each such call waits for its turn.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from ._admission import _UNSENT
from ._errors import Refused
from ._pending import awaited
from ._scope import scope
from ._tidegate import Asked, Listener, Pending, Permit, Refusal

if TYPE_CHECKING:
    from ._quota import Quota

Client = TypeVar("Client")


class _Limited:
    """What both transports have in common."""

    def __init__(
        self,
        quota: Quota,
        provider: str,
        inner: Any = None,
        *,
        lane: str | None = None,
        tenant: str | None = None,
        max_wait: float | None = None,
    ) -> None:
        self._quota = quota
        self._provider = provider
        # Limited before: a call is counted once.
        inner = inner._inner if isinstance(inner, _Limited) else inner
        self._inner: Any = inner if inner is not None else self._default()
        self._lane, self._tenant, self._max_wait = lane, tenant, max_wait

    def _default(self) -> Any:
        raise NotImplementedError

    def _ask(self, request: Any, body: bytes) -> tuple[str, Pending] | None:
        asked = Asked.read(request.url.path, body)
        if asked is None:
            return None
        # What comes back is listened to as it is sent.
        request.headers["accept-encoding"] = "identity"
        model, within = f"{self._provider}:{asked.model}", scope.get()
        return model, self._quota._rust.admit(
            model,
            within.name() if within else None,
            tokens=asked.input_tokens,
            max_output=asked.max_output_tokens,
            lane=self._lane,
            tenant=self._tenant,
            template=asked.template,
            ticket=within.ticket(model) if within else None,
            max_wait=self._max_wait if self._max_wait is not None or within is None else within.max_wait,
        )

    def _admitted(self, model: str, answer: object) -> Permit:
        within = scope.get()
        if isinstance(answer, Refusal):
            refused = Refused(answer, model)
            if within is not None:
                within.refused(refused)
            raise refused
        assert isinstance(answer, Permit)
        if within is not None:
            within.sent()
        answer.sent()
        return answer

    def _listener(self, model: str, response: Any) -> Listener:
        return Listener(self._quota.vendor(model), response.status_code, list(response.headers.items()))

    @staticmethod
    def _at_once(permit: Permit, listener: Listener, response: Any) -> Pending:
        """An answer that the inner transport has read, as one from a cache."""
        listener.hear(response.content)
        within = scope.get()
        return permit.listened(listener, within.failures if within else 0)

    @staticmethod
    def _lost(permit: Permit, error: BaseException) -> Pending:
        return permit.unused() if type(error).__name__ in _UNSENT else permit.keep_charged()


def _heard(failure: object) -> None:
    """Tells the activity around the call, if there is one, what the provider's error means."""
    within = scope.get()
    if within is not None and failure is not None:
        within.failed(failure)


class _Stream:
    """An answer on its way; the call ends with it."""

    def __init__(self, inner: Any, permit: Permit, listener: Listener) -> None:
        self._inner, self._permit, self._listener = inner, permit, listener
        self._is_whole = self._has_ended = False

    def _end(self) -> Pending | None:
        if self._has_ended:
            return None
        self._has_ended = True
        if not self._is_whole and not self._listener.is_over():
            return self._permit.keep_charged()
        within = scope.get()
        return self._permit.listened(self._listener, within.failures if within else 0)

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._inner:
            self._listener.hear(piece)
            yield piece
        self._is_whole = True
        # Before whoever reads it goes on: the next call finds the quota as it is.
        self.close()

    def close(self) -> None:
        pending = self._end()
        try:
            self._inner.close()
        finally:
            if pending is not None:
                _heard(pending.wait())

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            self._listener.hear(piece)
            yield piece
        self._is_whole = True
        await self.aclose()

    async def aclose(self) -> None:
        pending = self._end()
        try:
            await self._inner.aclose()
        finally:
            if pending is not None:
                _heard(await awaited(pending, breaks_off=False))


@functools.cache
def _classes(httpx: ModuleType) -> tuple[type[Any], type[Any]]:
    """The two transports for one of the packages ``httpx`` and ``httpx2``."""

    class SyncStream(_Stream, httpx.SyncByteStream):  # type: ignore[misc, name-defined]
        pass

    class AsyncStream(_Stream, httpx.AsyncByteStream):  # type: ignore[misc, name-defined]
        pass

    class LimitedTransport(_Limited, httpx.BaseTransport):  # type: ignore[misc, name-defined]
        def _default(self) -> Any:
            return httpx.HTTPTransport()

        def handle_request(self, request: Any) -> Any:
            asked = self._ask(request, request.read())
            if asked is None:
                return self._inner.handle_request(request)
            model, pending = asked
            permit = self._admitted(model, pending.wait())
            try:
                response = self._inner.handle_request(request)
            except BaseException as error:
                self._lost(permit, error).wait()
                raise
            listener = self._listener(model, response)
            if response.is_closed:
                _heard(self._at_once(permit, listener, response).wait())
                return response
            response.stream = SyncStream(response.stream, permit, listener)
            return response

        def close(self) -> None:
            self._inner.close()

    class LimitedAsyncTransport(_Limited, httpx.AsyncBaseTransport):  # type: ignore[misc, name-defined]
        def _default(self) -> Any:
            return httpx.AsyncHTTPTransport()

        async def handle_async_request(self, request: Any) -> Any:
            asked = self._ask(request, await request.aread())
            if asked is None:
                return await self._inner.handle_async_request(request)
            model, pending = asked
            permit = self._admitted(model, await awaited(pending))
            try:
                response = await self._inner.handle_async_request(request)
            except BaseException as error:
                await awaited(self._lost(permit, error), breaks_off=False)
                raise
            listener = self._listener(model, response)
            if response.is_closed:
                _heard(await awaited(self._at_once(permit, listener, response), breaks_off=False))
                return response
            response.stream = AsyncStream(response.stream, permit, listener)
            return response

        async def aclose(self) -> None:
            await self._inner.aclose()

    return LimitedTransport, LimitedAsyncTransport


def _installed() -> ModuleType:
    """``httpx``, or ``httpx2`` where that alone is there."""
    try:
        import httpx
    except ImportError:
        import httpx2 as httpx  # type: ignore[no-redef]
    return httpx


def Transport(quota: Quota, provider: str, inner: Any = None, *, httpx: ModuleType | None = None, **options: Any) -> Any:
    """A transport for ``httpx.Client``: calls of this provider's models wait for their turn.

    :param inner: the transport that sends; ``httpx.HTTPTransport()`` if not stated.
    :param httpx: which package it is for, where both ``httpx`` and ``httpx2`` are installed.
    :param options: ``lane``, ``tenant``, and ``max_wait`` in seconds, after which ``Refused`` is raised.
    """
    return _classes(httpx or _installed())[0](quota, provider, inner, **options)


def AsyncTransport(
    quota: Quota, provider: str, inner: Any = None, *, httpx: ModuleType | None = None, **options: Any
) -> Any:
    """The same for ``httpx.AsyncClient``."""
    return _classes(httpx or _installed())[1](quota, provider, inner, **options)


def _httpx_of(client: object) -> tuple[ModuleType, bool]:
    """The package that a client is of, and whether it is asynchronous."""
    for name in ("httpx2", "httpx"):
        module = sys.modules.get(name)
        if module is not None and isinstance(client, (module.Client, module.AsyncClient)):
            return module, isinstance(client, module.AsyncClient)
    raise TypeError(f"{type(client).__name__} is no client of httpx")


def limit(
    client: Client, quota: Quota, provider: str | None = None, *, retries: int = 0, **options: Any
) -> Client:
    """A client of OpenAI's or Anthropic's SDK, or boto3's for Bedrock, of which each call waits for its turn; its
    own retries are off. boto3's is changed in place, the others' are new. Keys, base URL, headers, hooks, time-out, proxies,
    certificates and connections stay what they are. Of a client that is limited already, this quota takes the other's place.

    :param provider: the provider's name in the quota; the SDK's own, if not stated.
    :param retries: how often the SDK asks again by itself, where nothing above it does; each such call
        waits for its turn, and after a 429 for the gate.
    :param options: as for ``Transport``.
    """
    if hasattr(getattr(client, "meta", None), "events"):
        if retries:
            raise ValueError("retries: boto3's would ask again without a turn; ask again above it")
        from . import _boto

        _boto.limit(client, quota, provider or "bedrock", **options)
        return client
    inner = getattr(client, "_client", None)
    if inner is None or not hasattr(client, "with_options"):
        raise TypeError(
            f"{type(client).__name__} is no client of the SDKs of OpenAI or Anthropic, or of boto3;"
            " give its httpx client a tidegate.Transport"
        )
    httpx, is_async = _httpx_of(inner)
    provider = provider or type(client).__module__.partition(".")[0]
    waits = _classes(httpx)[is_async]

    def wrap(own: Any) -> Any:
        return waits(quota, provider, own, **options)

    kind = httpx.AsyncClient if is_async else httpx.Client
    # The client's own transports go on sending: proxies, certificates and bounds are theirs.
    mounts = {pattern.pattern: own and wrap(own) for pattern, own in inner._mounts.items()}
    limited = kind(
        transport=wrap(inner._transport),
        mounts=mounts,
        timeout=inner.timeout,
        headers=inner.headers,
        auth=inner.auth,
        params=inner.params,
        cookies=inner.cookies,
        event_hooks=inner.event_hooks,
        follow_redirects=inner.follow_redirects,
    )
    # It closes them when it is collected.
    limited._tidegate_sends_with = inner
    made: Client = client.with_options(http_client=limited, max_retries=retries)
    return made
