"""AWS's boto3 behind a quota, by the events that its clients tell of each call."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from .sdk import _heard, _Limited

if TYPE_CHECKING:
    from ._quota import Quota

#: Where a call's permit stands from one event to the next.
_CALL = "tidegate"

#: What an answer that is read piece by piece says of its use before that.
_INPUT, _OUTPUT = "x-amzn-bedrock-input-token-count", "x-amzn-bedrock-output-token-count"


class _Calls(_Limited):
    """The calls of one client."""

    def _default(self) -> None:
        return None

    def begins(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        # Before it is signed: a signature holds for minutes, and a turn may be further off.
        request = SimpleNamespace(url=SimpleNamespace(path=params["url_path"]), headers=params["headers"])
        asked = self._ask(request, params["body"])
        if asked is not None:
            model, pending = asked
            context[_CALL] = model, self._admitted(model, pending.wait())

    def ends(self, http_response: Any, model: Any, context: dict[str, Any], **_: Any) -> None:
        if _CALL not in context:
            return
        name, permit = context.pop(_CALL)
        headers = http_response.headers
        if http_response.status_code >= 300 or not model.has_streaming_output:
            _heard(self._at_once(permit, self._listener(name, http_response), http_response).wait())
        elif _INPUT in headers and _OUTPUT in headers:
            permit.used(int(headers[_INPUT]), 0, 0, int(headers[_OUTPUT])).wait()
        else:
            permit.keep_charged().wait()

    def fails(self, exception: BaseException, context: dict[str, Any], **_: Any) -> None:
        if _CALL in context:
            _, permit = context.pop(_CALL)
            self._lost(permit, exception).wait()


def limit(client: Any, quota: Quota, provider: str, **options: Any) -> None:
    """Each call of this client waits for its turn; its own retries are off."""
    service, calls = client.meta.service_model.service_id.hyphenize(), _Calls(quota, provider, **options)
    events = client.meta.events
    events.unregister(f"needs-retry.{service}", unique_id=f"retry-config-{service}")
    for event, hears in (("before-call", calls.begins), ("after-call", calls.ends), ("after-call-error", calls.fails)):
        # In the place of an earlier quota's.
        events.unregister(f"{event}.{service}", unique_id=f"{_CALL}-{event}")
        events.register(f"{event}.{service}", hears, unique_id=f"{_CALL}-{event}")
