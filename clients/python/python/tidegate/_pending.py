"""What takes time, in an event loop."""

from __future__ import annotations

import asyncio
from typing import Any

from ._tidegate import Pending


async def awaited(pending: Pending, *, breaks_off: bool = True) -> Any:
    """Waits without a thread. Cancelled, what was begun is broken off, unless it must not be: a
    settlement goes on by itself."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def tell() -> None:
        try:
            loop.call_soon_threadsafe(ended.set)
        except RuntimeError:
            pass  # The loop is closed: nobody waits any more.

    pending.then(tell)
    try:
        await ended.wait()
    except BaseException:
        if breaks_off:
            pending.cancel()
        raise
    return pending.take()
