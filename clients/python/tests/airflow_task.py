"""One task of docs/quick-starts/airflow.md by Airflow's own classes, without a scheduler: what came of it as JSON.

Usage: airflow_task.py FOLDER ADDRESS TASK_QUEUE BATCH
"""

import asyncio
import json
import sys
from types import SimpleNamespace

FOLDER, ADDRESS, QUEUE, BATCH = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
sys.path.insert(0, FOLDER)

from airflow.sdk.exceptions import TaskDeferred  # noqa: E402
from airflow.sdk.module_loading import import_string  # noqa: E402
from tidegate_airflow import ProcessDocuments  # noqa: E402


def deferred(batch, run):
    """What the task defers to: its trigger as the triggerer makes it, and the method that follows."""
    operator = ProcessDocuments(task_id="summaries", batch=batch, address=ADDRESS, task_queue=QUEUE)
    ti = SimpleNamespace(dag_id="contracts", task_id="summaries", run_id=run, map_index=-1)
    try:
        operator.execute({"ti": ti})
    except TaskDeferred as error:
        name, given = error.trigger.serialize()
        return import_string(name)(**given), getattr(operator, error.method_name)
    raise SystemExit("the task was not deferred")


async def event(trigger):
    async for told in trigger.run():
        return told.payload


def ended(batch, run):
    trigger, method = deferred(batch, run)
    return method({}, asyncio.run(event(trigger)))


run = "scheduled__2026-11-28T00:00:00+00:00"
first, _ = deferred(BATCH, run)
again, _ = deferred(BATCH, run)
told = {"ids": [first.id, again.id], "report": ended(BATCH, run)}
try:
    ended({**BATCH, "model": "openai:other"}, "manual__1")
except Exception as error:
    told["failed"] = f"{type(error).__name__}: {error}"
print(json.dumps(told))
