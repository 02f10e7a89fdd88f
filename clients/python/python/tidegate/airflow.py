"""A batch as one task of Airflow 3, which waits for it in the triggerer and holds no worker's slot.

    ProcessDocuments(
        task_id="summaries",
        batch={
            "source": "s3://bucket/contracts/{{ ds }}/",
            "output": "s3://bucket/out/{{ ds }}/",
            "instructions": "Summarise in three points.",
            "model": "openai:gpt-6-mini",
        },
    )

Wants ``tidegate[temporal]`` where tasks run and where the triggerer does. Temporal is found by its environment and
configuration file, as by every SDK of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException
from airflow.triggers.base import BaseTrigger, TriggerEvent
from temporalio.client import WorkflowFailureError
from temporalio.common import WorkflowIDConflictPolicy

from ._batch import connected


class ProcessDocuments(BaseOperator):  # type: ignore[misc]
    """Starts a batch, or joins the one that an earlier try of this task has started; its result is the report.

    :param batch: the fields of the batch's input; texts in it may be templates.
    :param task_queue: tidegate's own.
    """

    template_fields = ("batch",)

    def __init__(self, *, batch: dict[str, Any], task_queue: str = "tidegate", **given: Any) -> None:
        super().__init__(**given)
        self.batch, self.task_queue = batch, task_queue

    def execute(self, context: Any) -> None:
        task = context["ti"]
        id = f"{task.dag_id}.{task.task_id}.{task.run_id}.{task.map_index}"
        asyncio.run(self._start(id))
        self.defer(trigger=Ended(id), method_name="ended")

    async def _start(self, id: str) -> None:
        client = await connected()
        await client.start_workflow(
            "ProcessDocuments",
            self.batch,
            id=id,
            task_queue=self.task_queue,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        )

    def ended(self, context: Any, event: dict[str, Any]) -> Any:
        """What the task does when its batch has ended; raises what the batch failed with."""
        if event["failed"]:
            raise AirflowException(event["failed"])
        return event["report"]


class Ended(BaseTrigger):  # type: ignore[misc]
    """Waits for the end of a batch."""

    def __init__(self, id: str) -> None:
        super().__init__()
        self.id = id

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return "tidegate.airflow.Ended", {"id": self.id}

    async def run(self) -> AsyncIterator[Any]:
        client = await connected()
        try:
            report: Any = await client.get_workflow_handle(self.id).result()
            yield TriggerEvent({"failed": None, "report": report})
        except WorkflowFailureError as error:
            yield TriggerEvent({"failed": str(error.cause)})
