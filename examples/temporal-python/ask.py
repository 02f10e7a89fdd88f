"""A workflow of Temporal's Python SDK that calls tidegate's activities by name; no library of tidegate's.

    python ask.py ADDRESS NAMESPACE MODEL INPUT_URI

Prints one JSON object a line. `tidegate.call` runs on the workers of tidegate; this program's own worker
runs the workflow alone.
"""

import asyncio
import json
import sys
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.client import Client, WorkflowFailureError
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

QUEUE = "questions"

# Time-outs as docs/temporal-door.md says; no retry policy: the failures of tidegate carry their own delay.
OPTIONS: dict[str, Any] = {
    "task_queue": "tidegate-lane-interactive",
    "start_to_close_timeout": timedelta(minutes=15),
    "heartbeat_timeout": timedelta(seconds=30),
}


@workflow.defn
class Questions:
    @workflow.run
    async def run(self, model: str, large: str) -> dict[str, Any]:
        ask = {"model": model, "max_output_tokens": 256, "on_cut": "keep"}

        async def call(more: dict[str, Any], **options: Any) -> dict[str, Any]:
            return await workflow.execute_activity("tidegate.call", ask | more, **(OPTIONS | options))

        async def seconds(number: int) -> float:
            began = workflow.now()
            await call({"prompt": f"Question {number}: why is the sea salty?"})
            return (workflow.now() - began).total_seconds()

        schema = {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        }
        tool = {
            "name": "tide",
            "description": "The tide at a port.",
            "input_schema": {"type": "object", "properties": {"port": {"type": "string"}}},
        }
        turns = [{"role": "user", "content": "When is high water at Husum?"}]
        tools = {"max_tokens": 200, "tools": [tool], "messages": turns}
        tools = await workflow.execute_activity("tidegate.call", {"model": model, "body": tools}, **OPTIONS)
        once = RetryPolicy(maximum_attempts=1)
        waits = await asyncio.gather(*(seconds(number) for number in range(50)))
        return {
            "prompt": (await call({"prompt": "Why?"}))["answer"] != "",
            "schema": (await call({"prompt": "Which city?", "schema": schema}))["value"],
            "tools": tools["reply"]["type"],
            "once": (await call({"prompt": "Once?"}, retry_policy=once))["provider_calls"],
            "large": (await call({"prompt": {"uri": large}}))["input_tokens"],
            "fifty": sorted(waits),
        }


@workflow.defn
class Misspelt:
    @workflow.run
    async def run(self, model: str) -> None:
        await workflow.execute_activity("tidegate.call", {"model": model, "promt": "Why?"}, **OPTIONS)


@workflow.defn
class Slow:
    """To be cancelled: the call is, and gives back its turn."""

    @workflow.run
    async def run(self, model: str) -> None:
        options = OPTIONS | {"heartbeat_timeout": timedelta(seconds=3)}
        wait = workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
        question = {"model": model, "prompt": "Answer slowly."}
        await workflow.execute_activity("tidegate.call", question, cancellation_type=wait, **options)


async def main() -> None:
    address, namespace, model, large = sys.argv[1:]
    client = await Client.connect(address, namespace=namespace)
    workflows = [Questions, Misspelt, Slow]
    runner = UnsandboxedWorkflowRunner()
    async with Worker(client, task_queue=QUEUE, workflows=workflows, workflow_runner=runner):
        answers = await client.execute_workflow(Questions.run, args=[model, large], id="python", task_queue=QUEUE)
        print(json.dumps(answers))
        try:
            await client.execute_workflow(Misspelt.run, model, id="python-misspelt", task_queue=QUEUE)
        except WorkflowFailureError as failure:
            activity = failure.cause
            assert isinstance(activity, ActivityError) and isinstance(activity.cause, ApplicationError)
            print(json.dumps({"failure": activity.cause.type, "says": activity.cause.message}))
        slow = await client.start_workflow(Slow.run, model, id="python-slow", task_queue=QUEUE)
        await asyncio.sleep(4)
        began = asyncio.get_running_loop().time()
        await slow.cancel()
        try:
            await slow.result()
        except WorkflowFailureError:
            print(json.dumps({"cancelled_after": asyncio.get_running_loop().time() - began}))


asyncio.run(main())
