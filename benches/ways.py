#!/usr/bin/env python3
"""The same calls in four ways behind the limiter, and beside each what one does without it.

    make python && cargo build && cargo build --bench ways && benches/ways.py 700

A provider that counts strictly over 60 s (`tidegate simulator`), that allows six of seven in a minute: 600 of 700.
Each way has a model, and so a window, of its own; all calls are begun at once, and a call whose client gives it up is made again until
it is answered, because that is what it takes to come to the same result. Calls and 429s are the simulator's account. Rust's part is
`benches/ways.rs`. Names of ways may follow the number; without, all of them run one after another, some twelve minutes.
"""

import asyncio
import json
import logging
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from datetime import timedelta

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".tools/python"
if not os.environ.get("VIRTUAL_ENV") and pathlib.Path(sys.prefix).resolve() != PYTHON.resolve():
    # Goes on in a Python that has the package and what it is compared with.
    os.execv(PYTHON / "bin/python", [str(PYTHON / "bin/python"), *sys.argv])

import openai  # noqa: E402
from temporalio import activity, workflow  # noqa: E402
from temporalio.client import Client  # noqa: E402
from temporalio.worker import UnsandboxedWorkflowRunner, Worker  # noqa: E402

import tidegate  # noqa: E402
from tidegate import temporal as gated  # noqa: E402

TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
MAX_OUTPUT = 50


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def until_open(port):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit(f"nothing listens at {port}")


class Stage:
    """Provider, Redis, Temporal, and what is asked of them."""

    def __init__(self, calls):
        self.calls, self.rpm = calls, calls * 6 // 7
        self.processes, self.folder = [], tempfile.TemporaryDirectory()
        self.url = f"http://127.0.0.1:{self.start(self.simulator)}"
        self.redis = f"redis://127.0.0.1:{self.start(self.redis_server)}"
        self.temporal = f"127.0.0.1:{self.start(self.temporal_server)}"

    def start(self, command):
        port = free_port()
        quiet = subprocess.DEVNULL
        self.processes.append(subprocess.Popen(command(port), stdout=quiet, stderr=quiet))
        until_open(port)
        return port

    def simulator(self, port):
        config = pathlib.Path(self.folder.name) / "simulator.toml"
        config.write_text(f'mean-output-tokens = 20\n[default]\nrpm = {self.rpm}\nalgorithm = "sliding-window"\n')
        return [TARGET / "debug/tidegate", "simulator", "--port", str(port), "--config", config]

    def redis_server(self, port):
        server = shutil.which("redis-server") or shutil.which("valkey-server")
        return [server, "--port", str(port), "--save", "", "--appendonly", "no"]

    def temporal_server(self, port):
        cli = os.environ.get("TIDEGATE_TEMPORAL_CLI") or ROOT / ".tools/bin/temporal"
        return [cli, "server", "start-dev", "--headless", "--port", str(port), "--log-level", "error"]

    def account(self, model):
        with urllib.request.urlopen(f"{self.url}/account") as reply:
            return json.load(reply)["models"][model]

    def end(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()


def rust(way):
    def run(stage, model):
        program = max(TARGET.glob("debug/deps/ways-*[0-9a-f]"), key=lambda file: file.stat().st_mtime)
        arguments = [way, stage.url, stage.redis, stage.temporal, model, str(stage.calls), str(stage.rpm)]
        answered = subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout
        return int(answered)

    return run


def quota_of(stage, model):
    limits = {f"openai:{model}": tidegate.Limits(rpm=stage.rpm)}
    return tidegate.Quota(stage.redis, limits, key_prefix=f"ways-{model}")


def client_of(stage, **options):
    return openai.AsyncOpenAI(base_url=f"{stage.url}/v1", api_key="sk-x", **options)


async def asked(client, model, number):
    messages = [{"role": "user", "content": f"What is {number} times {number}?"}]
    answer = await client.chat.completions.create(model=model, max_completion_tokens=MAX_OUTPUT, messages=messages)
    return answer.choices[0].message.content


def sdk(is_limited):
    """The vendor's SDK, with one line of tidegate or with its own retries."""

    def run(stage, model):
        async def all_at_once():
            client = client_of(stage)
            if is_limited:
                client = tidegate.limit(client, quota_of(stage, model))

            async def until_answered(number):
                while True:
                    try:
                        return await asked(client, model, number)
                    except openai.APIError:
                        pass

            return await asyncio.gather(*(until_answered(number) for number in range(stage.calls)))

        return len(asyncio.run(all_at_once()))

    return run


@workflow.defn
class AskAll:
    @workflow.run
    async def run(self, calls: int) -> int:
        patience = {"start_to_close_timeout": timedelta(minutes=5), "heartbeat_timeout": timedelta(seconds=40)}
        answers = (workflow.execute_activity("ask", number, **patience) for number in range(calls))
        return len(await asyncio.gather(*answers))


def temporal(is_limited):
    """Activities with the vendor's SDK: behind the interceptor, or with Temporal's retry policy alone."""

    def run(stage, model):
        async def all_of_them():
            # Temporal alone retries.
            client, interceptors = client_of(stage, max_retries=0), []
            if is_limited:
                quota = quota_of(stage, model)
                client, interceptors = tidegate.limit(client, quota), [gated.Interceptor(quota)]

            @activity.defn(name="ask")
            async def ask(number: int) -> bool:
                return await asked(client, model, number) is not None

            connection, queue = await Client.connect(stage.temporal), f"ways-{model}"
            worker = Worker(
                connection,
                task_queue=queue,
                workflows=[AskAll],
                activities=[ask],
                interceptors=interceptors,
                workflow_runner=UnsandboxedWorkflowRunner(),
            )
            async with worker:
                return await connection.execute_workflow(AskAll.run, stage.calls, id=queue, task_queue=queue)

        return asyncio.run(all_of_them())

    return run


WAYS = {
    "rust-temporal": ("Rust with Temporal", rust("rust-temporal")),
    "rust-temporal-alone": ("  Temporal's retry policy alone", rust("rust-temporal-alone")),
    "rust": ("Rust without Temporal", rust("rust")),
    "rust-alone": ("  exponential backoff", rust("rust-alone")),
    "python-temporal": ("Python with Temporal", temporal(True)),
    "python-temporal-alone": ("  Temporal's retry policy alone", temporal(False)),
    "python-sdk": ("Python with OpenAI's SDK", sdk(True)),
    "python-sdk-alone": ("  the SDK's own retries", sdk(False)),
}


def main():
    # Temporal's worker prints each attempt that fails.
    logging.disable(logging.CRITICAL)
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 700
    chosen = sys.argv[2:] or list(WAYS)
    stage = Stage(calls)
    try:
        for name in chosen:
            title, run = WAYS[name]
            began = time.monotonic()
            answered = run(stage, name)
            took, account = time.monotonic() - began, stage.account(name)
            refused = sum(account["refused"].values())
            print(
                f"{title:32} {answered} of {calls} in {took:6.1f} s, {account['requests'] / calls:5.2f} calls each, {refused:5} 429s",
                flush=True,
            )
    finally:
        stage.end()


if __name__ == "__main__":
    main()
