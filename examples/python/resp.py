"""Just enough of Redis, in the standard library only."""

from __future__ import annotations

import hashlib
import socket
import ssl
import threading
from typing import Any, BinaryIO, Optional, Sequence
from urllib.parse import unquote, urlsplit


class Redis:
    """One connection, one command at a time, for all threads. Send only what may safely be sent twice: a lost reply is asked
    for again on a new connection."""

    def __init__(self, url: str) -> None:
        self._url, self._lock = urlsplit(url), threading.Lock()
        self._file: Optional[BinaryIO] = None

    def script(self, text: bytes, keys: Sequence[str], arguments: Sequence[Any]) -> list[Any]:
        """Runs a script by its hash; sends its text where the server has lost it."""
        try:
            return self.command("EVALSHA", hashlib.sha1(text).hexdigest(), len(keys), *keys, *arguments)
        except RuntimeError as error:
            if not str(error).startswith("NOSCRIPT"):
                raise
            return self.command("EVAL", text, len(keys), *keys, *arguments)

    def command(self, *words: Any) -> Any:
        """Raises `OSError` while Redis is away and `RuntimeError` for what it says is wrong."""
        with self._lock:
            try:
                return self._exchange(words)
            except OSError:
                self._file = None
                return self._exchange(words)

    def _exchange(self, words: tuple[Any, ...]) -> Any:
        if self._file is None:
            self._connect()
        encoded = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self._file.write(b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in encoded))
        self._file.flush()
        return self._read()

    def _connect(self) -> None:
        url = self._url
        connection = socket.create_connection((url.hostname or "127.0.0.1", url.port or 6379), timeout=2.0)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if url.scheme == "rediss":
            connection = ssl.create_default_context().wrap_socket(connection, server_hostname=url.hostname)
        self._file = connection.makefile("rwb")
        if url.password:
            self._exchange(("AUTH", *filter(None, (unquote(url.username or ""), unquote(url.password)))))
        if url.path.strip("/"):
            self._exchange(("SELECT", url.path.strip("/")))

    def _read(self) -> Any:
        line = self._file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("Redis closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b"$":
            return self._file.read(int(rest) + 2)[:-2] if rest != b"-1" else None
        if kind == b"*":
            return [self._read() for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest
