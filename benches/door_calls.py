#!/usr/bin/env python3
"""`tidegate.call` from workflows of Temporal's Python SDK: what a call takes, and 300 beside a batch.

    cargo build --release && .tools/python/bin/python benches/door_calls.py [CALLS]

Milliseconds are from the start of an activity to its end, by the server's clock; an activity that refuses its input
at once stands for an empty one of the same worker. Actions are those that Temporal bills: each attempt of an activity,
and each of its heartbeats. Bounds: 1.03 actions a call of 2 or 12 s; 3 ms more for a call that is admitted at once; of 300
interactive calls beside a batch that saturates, one a second, 1 s of waiting for quota at the 99th percentile, and 2.5 s
from where the workflow schedules them to their end, for calls of 1 s.
"""

import asyncio
import contextlib
import json
import pathlib
import statistics
import subprocess
import sys
import time
import urllib.request
from datetime import timedelta

from doors import MODEL, PROGRAM, TPM, Stage
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

TIMEOUTS = {"start_to_close_timeout": timedelta(minutes=15), "heartbeat_timeout": timedelta(seconds=30)}
CALL = {"model": f"openai:{MODEL}", "prompt": "The tide?", "max_output_tokens": 16}


@workflow.defn
class Asks:
    @workflow.run
    async def run(self, each: list[dict], every: float | None, text: str) -> None:
        async def one(asked):
            asked = asked | {"prompt": f"{asked['prompt']} {text}"} if text else asked
            with contextlib.suppress(Exception):  # what is wrong on purpose fails
                await workflow.execute_activity("tidegate.call", asked, task_queue="tidegate-lane-interactive", **TIMEOUTS)

        begun = []
        for asked in each:
            if every is None:
                await one(asked)
            else:
                begun.append(asyncio.create_task(one(asked)))
                await asyncio.sleep(every)
        await asyncio.gather(*begun)


async def asks(stage, id, each, every=None, text=""):
    """One after the other, or one every so many seconds, the text behind each prompt: 300 of them would be more than a
    workflow's input may hold. Of each activity its milliseconds from its start and from
    where it was scheduled; how often they were deferred."""
    client = await Client.connect(f"127.0.0.1:{stage.temporal}")
    async with Worker(client, task_queue="asks", workflows=[Asks], workflow_runner=UnsandboxedWorkflowRunner()):
        await client.execute_workflow(Asks.run, args=[each, every, text], id=id, task_queue="asks")
    scheduled, started, times, deferrals = {}, {}, [], 0
    for event in (await client.get_workflow_handle(id).fetch_history()).events:
        at = event.event_time.ToNanoseconds() / 1e6
        if event.HasField("activity_task_scheduled_event_attributes"):
            scheduled[event.event_id] = at
        if event.HasField("activity_task_started_event_attributes"):
            attempt = event.activity_task_started_event_attributes.attempt
            started[event.event_id], deferrals = at, deferrals + attempt - 1
        for end in ("activity_task_completed_event_attributes", "activity_task_failed_event_attributes"):
            if event.HasField(end):
                ended = getattr(event, end)
                times.append((at - started[ended.started_event_id], at - scheduled[ended.scheduled_event_id]))
    return times, deferrals


def alone(count):
    stage = Stage("mean-output-tokens = 5\noutput-spread = 0.0\n", "rpm = 6_000_000\ntpm = 6_000_000_000", with_worker=True)
    for name, asked in {"an activity that refuses its input": {"promt": ""}, "a call that is admitted at once": CALL}.items():
        times, _ = asyncio.run(asks(stage, name.replace(" ", "-"), [asked] * count))
        times = [time for time, _ in times]
        nine = sorted(times)[len(times) * 9 // 10]
        print(f"{name}: median {statistics.median(times):.1f} ms, nine in ten within {nine:.1f} ms, of {len(times)}", flush=True)
    stage.stop()


def beside_a_batch(count=300):
    latency = 'latency = { base = "1s", jitter = 0 }\nmean-output-tokens = 100\n'
    limit = f'tpm = {TPM}\nalgorithm = "token-bucket"\nbucket = "60s"\n'
    stage = Stage(f"{latency}[default]\n{limit}", f"tpm = {TPM}", with_worker=True)
    folder = pathlib.Path(stage.folder.name)
    text = "In the harbour the master writes about the tide and the ships. " * 130
    records = (json.dumps({"text": f"{number} {text}"}) + "\n" for number in range(1_200))
    (folder / "records.jsonl").write_text("".join(records))
    command = [PROGRAM, "--config", folder / "tidegate.toml", "run", folder / "records.jsonl", "--output", folder / "out"]
    command += ["--detach", "--records", "--model", CALL["model"], "--max-output-tokens", "300", "--instructions", "The tide?"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(40)
    calls = [CALL | {"prompt": str(number), "max_output_tokens": 300} for number in range(count)]
    times, deferrals = asyncio.run(asks(stage, "interactive", calls, 1.0, text))
    whole = sorted(whole for _, whole in times)
    print(f"{count} calls of 2,000 tokens and 1 s, one a second, beside a batch: {deferrals} deferrals")
    print(f"from the schedule to the end: median {statistics.median(whole):.0f} ms, p99 {whole[count * 99 // 100]:.0f} ms; waits for quota:")
    print("\n".join(metrics(stage, "tidegate_quota_wait_seconds", 'lane="interactive"')))
    print("while it ran:", stage.account())
    stage.stop()


def metrics(stage, *words):
    """The lines of the worker's page that have all these words."""
    page = urllib.request.urlopen(f"http://127.0.0.1:{stage.metrics}/metrics").read().decode()
    return [line for line in page.splitlines() if all(word in line for word in words)]


def actions(count=30):
    for seconds in 2, 12, 40:
        simulator = f'latency = {{ base = "{seconds}s", jitter = 0 }}\nmean-output-tokens = 5\noutput-spread = 0.0\n'
        stage = Stage(simulator, "rpm = 6_000_000\ntpm = 6_000_000_000", with_worker=True)
        times, deferrals = asyncio.run(asks(stage, f"calls-of-{seconds}-s", [CALL] * count, 0.1))
        beats = metrics(stage, "temporal_request", "RecordActivityTaskHeartbeat")
        beats = sum(float(line.split()[-1]) for line in beats if "latency" not in line and "failure" not in line)
        each = (len(times) + deferrals + beats) / count
        print(f"calls of {seconds} s: {each:.2f} actions each ({len(times)} activities, {deferrals} more attempts, {beats:.0f} beats)", flush=True)
        stage.stop()


if __name__ == "__main__":
    actions()
    alone(int(sys.argv[1]) if sys.argv[1:] else 200)
    beside_a_batch()
