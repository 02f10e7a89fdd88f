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
                answer = self._exchange(words)
            except OSError:
                answer = self._exchange(words)
        if isinstance(answer, RuntimeError):
            raise answer
        return answer

    def _exchange(self, words: Sequence[Any]) -> Any:
        # Whatever interrupts us, no later command may read what was meant for this one.
        file, self._file = self._file or self._connect(), None
        answer = ask(file, words)
        self._file = file
        return answer

    def _connect(self) -> BinaryIO:
        url = self._url
        connection = socket.create_connection((url.hostname or "127.0.0.1", url.port or 6379), timeout=2.0)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if url.scheme == "rediss":
            connection = ssl.create_default_context().wrap_socket(connection, server_hostname=url.hostname)
        file = connection.makefile("rwb")
        user = [unquote(url.username)] if url.username else []
        hello = [["AUTH", *user, unquote(url.password)]] if url.password else []
        if url.path.strip("/"):
            hello.append(["SELECT", url.path.strip("/")])
        for words in hello:
            refused = ask(file, words)
            if isinstance(refused, RuntimeError):
                raise refused
        return file


def ask(file: BinaryIO, words: Sequence[Any]) -> Any:
    """Sends one command and reads its answer; an error answer is returned, not raised, so that all of it is read."""
    encoded = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    file.write(b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in encoded))
    file.flush()
    return read(file)


def read(file: BinaryIO) -> Any:
    """One answer: `int`, `bytes`, `None`, a list of them, or a `RuntimeError`."""
    line = file.readline()
    if not line.endswith(b"\r\n"):
        raise ConnectionError("Redis closed the connection")
    kind, rest = line[:1], line[1:-2]
    if kind == b"-":
        return RuntimeError(rest.decode())
    if kind == b"$":
        return file.read(int(rest) + 2)[:-2] if rest != b"-1" else None
    if kind == b"*":
        return [read(file) for _ in range(int(rest))]
    return int(rest) if kind == b":" else rest
