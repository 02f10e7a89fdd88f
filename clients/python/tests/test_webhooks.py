"""The message of a batch's end, taken by the library that its page names."""

from __future__ import annotations

import asyncio
import base64
import queue
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import Simulator

import tidegate

webhooks = pytest.importorskip("standardwebhooks")
pytest.importorskip("temporalio")
from temporalio.client import Client  # noqa: E402

SECRET = "whsec_" + base64.b64encode(b"thirty-two bytes of a secret key").decode()


def test_standard_webhooks_library_verifies_it(
    simulator: Callable[[str], Simulator],
    worker: Callable[[str, str], Path],
    temporal: str,
    prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    got: queue.Queue[tuple[dict[str, str], bytes]] = queue.Queue()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.put((dict(self.headers.items()), self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

    receiver = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.md").write_text("The tide was six feet high.")
    monkeypatch.setenv("WEBHOOK_SECRET", SECRET)
    url = f"http://127.0.0.1:{receiver.server_port}/"
    ours = f'[webhooks.ours]\nurl = "{url}"\nsecret-env = "WEBHOOK_SECRET"\n'
    worker(f"{simulator('mean-output-tokens = 20').url}/v1", f"rpm = 6000\n{ours}")

    async def batch() -> None:
        asked: dict[str, Any] = {"instructions": "Summarise.", "model": "openai:m", "webhook": "ours", "task_queue": prefix}
        started = await tidegate.run(
            tmp_path / "in", output=tmp_path / "out", client=await Client.connect(temporal), **asked
        )
        assert (await started.done())["succeeded"] == 1

    asyncio.run(asyncio.wait_for(batch(), 120))
    headers, body = got.get(timeout=60)
    receiver.shutdown()
    told = webhooks.Webhook(SECRET).verify(body, headers)
    assert (told["type"], told["data"]["status"], told["data"]["succeeded"]) == ("batch.finished", "completed", 1)
    with pytest.raises(webhooks.WebhookVerificationError):
        webhooks.Webhook(SECRET).verify(body + b" ", headers)
