"""tidegate's own batches: started, followed and read. The workers are tidegate's; the documents and
the results lie where both can reach them."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ._results import Results

if TYPE_CHECKING:
    from temporalio.client import Client, WorkflowHandle


class Batch:
    """One batch."""

    def __init__(self, handle: WorkflowHandle[Any, Any], output: str) -> None:
        self._handle = handle
        #: The workflow's id.
        self.id = handle.id
        #: Where its results lie.
        self.output = output

    async def progress(self) -> dict[str, Any]:
        """How far it is: ``documents``, ``succeeded``, ``failed``, ``eta``, …"""
        told: dict[str, Any] = await self._handle.query("progress")
        return told

    async def follow(self, every: float = 2.0) -> AsyncIterator[dict[str, Any]]:
        """Its progress, every so many seconds, until it is done."""
        from temporalio.service import RPCError

        async def asked() -> dict[str, Any] | None:
            try:
                return await self.progress()
            except RPCError:
                return None  # No worker answers; the batch goes on.

        done = asyncio.ensure_future(self.done())
        tasks: list[asyncio.Future[Any]] = [done]
        try:
            while not done.done():
                tasks[1:] = [asyncio.ensure_future(asked())]
                # Without a worker an answer takes until its time-out.
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                if not done.done() and (told := tasks[1].result()) is not None:
                    yield told
                await asyncio.wait([done], timeout=every)
            yield done.result()
        finally:
            for task in tasks:
                task.cancel()

    async def done(self) -> dict[str, Any]:
        """What came of it, when it is done. Raises what the batch failed with."""
        told: dict[str, Any] = await self._handle.result()
        return told

    async def pause(self) -> None:
        """Begins no more calls until it is resumed."""
        await self._handle.signal("pause")

    async def resume(self) -> None:
        """Goes on."""
        await self._handle.signal("resume")

    async def cancel(self) -> None:
        """Ends it; what is done stays."""
        await self._handle.cancel()

    def results(self) -> Results:
        """Its results, when it is done: one document at a time, or as a table."""
        return Results(self.output)


def _uri(place: str | Path) -> str:
    # Without "..", which workers refuse.
    return str(place) if "://" in str(place) else Path(os.path.abspath(place)).as_uri()


def _folder_uri(place: str) -> str:
    return _uri(place).removesuffix("/") + "/"


def _source(place: str | Path) -> str:
    """As the program reads a path to a folder, a file or a glob."""
    text, wildcard = str(place), re.search(r"[*?[]", str(place))
    if "://" in text:
        return text
    # A name may contain a bracket, too.
    if wildcard is None or Path(text).exists():
        return _folder_uri(text) if Path(text).is_dir() or text.endswith("/") else _uri(text)
    begins = text.rfind("/", 0, wildcard.start()) + 1
    # The pattern is compared with names that are not quoted.
    return _folder_uri(text[:begins] or ".") + text[begins:]


async def connected() -> Client:
    """A client by Temporal's environment and configuration file, as every SDK of it."""
    from temporalio.client import Client
    from temporalio.envconfig import ClientConfig

    stated = ClientConfig.load_client_connect_config()
    stated.setdefault("target_host", "127.0.0.1:7233")
    return await Client.connect(**stated)


async def run(
    source: str | Path,
    *,
    output: str | Path,
    instructions: str | None = None,
    model: str | None = None,
    client: Client | None = None,
    task_queue: str = "tidegate",
    id: str | None = None,
    **fields: Any,
) -> Batch:
    """Starts a batch over a folder, a file, a glob or an object store's prefix, and does not wait for it.

    :param instructions: what to do with each document. None where the others of the fields say it: ``messages``,
        or ``task="embed"``, which makes vectors.
    :param model: the model. Leave it out with ``route``.
    :param client: a connected ``temporalio`` client; without it, by Temporal's environment and
        configuration file, as every SDK of it.
    :param fields: the other fields of the batch's input: ``lane``, ``schema``, ``max_output_tokens``, …
    """
    client = client or await connected()
    target = _uri(output)
    stated_here = {"instructions": instructions, "model": model}
    given = {"source": _source(source), "output": target, **{name: it for name, it in stated_here.items() if it is not None}}
    given |= fields
    handle = await client.start_workflow(
        "ProcessDocuments", given, id=id or f"batch-{uuid4().hex[:12]}", task_queue=task_queue
    )
    return Batch(handle, target)


async def follow(id: str, *, client: Client | None = None) -> Batch:
    """A batch that was started elsewhere; no worker need run. ``client`` is as for ``run``."""
    from temporalio.service import RPCError, RPCStatusCode

    client = client or await connected()
    handle: WorkflowHandle[Any, Any] = client.get_workflow_handle(id)
    about = await handle.describe()
    if about.workflow_type != "ProcessDocuments":
        raise ValueError(f"{id} is no batch of tidegate")
    # A batch that has continued as new keeps its input in its first run.
    first = client.get_workflow_handle(id, run_id=about.raw_description.workflow_execution_info.first_run_id)
    try:
        async for event in first.fetch_history_events(page_size=1):
            attributes = event.workflow_execution_started_event_attributes
            (given,) = await client.data_converter.decode(attributes.input.payloads)
            return Batch(handle, given["output"])
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
    # The first run is older than the namespace keeps histories: a worker knows the rest.
    told: dict[str, Any] = await handle.query("progress")
    return Batch(handle, told["output"])
