"""One task of docs/quick-starts/airflow.md by Airflow's own classes, without a scheduler: what came of it as JSON.

Usage: airflow_task.py DAG TASK_QUEUE FIELDS, where FIELDS stand in the place of the page's own.
"""

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace

from airflow.sdk.exceptions import TaskDeferred
from airflow.sdk.module_loading import import_string

DAG, QUEUE, FIELDS = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])


def deferred(fields, run):
    """What the task defers to: its trigger as the triggerer makes it, and the method that follows."""
    named = {}
    exec(DAG.read_text("utf-8"), named)
    operator = named["dag"].get_task("summaries")
    operator.batch, operator.task_queue = {**operator.batch, **fields}, QUEUE
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


def ended(fields, run):
    trigger, method = deferred(fields, run)
    return method({}, asyncio.run(event(trigger)))


run = "scheduled__2026-11-28T00:00:00+00:00"
first, _ = deferred(FIELDS, run)
again, _ = deferred(FIELDS, run)
told = {"ids": [first.id, again.id], "report": ended(FIELDS, run)}
try:
    ended({**FIELDS, "model": "openai:other"}, "manual__1")
except Exception as error:
    told["failed"] = f"{type(error).__name__}: {error}"
print(json.dumps(told))
