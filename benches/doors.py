#!/usr/bin/env python3
"""The HTTP door beside the bare provider, and LiteLLM's proxy beside both.

    cargo build --release && benches/doors.py               overhead and throughput
    cargo build --release && benches/doors.py streams       what the door adds to the first token of a stream
    cargo build --release && benches/doors.py faults        Redis away for 60 s, and then one of two replicas killed
    cargo build --release && benches/doors.py fleet 700     calls by 200 clients of the vendor's SDK, default settings
    cargo build --release && benches/doors.py lines 50000   a batch of so many lines of 4 KB, and as many documents
    benches/doors.py --litellm …                            LiteLLM's proxy in the same run (fetched into .tools/litellm)

The provider is `tidegate simulator`; of streams it is this program, which answers with ten events at once. Overhead: an
open loop of 300 calls a second over connections that are kept, each time from when a call was due; throughput: a closed
loop of 64 connections. Provider, door, Redis and clients share the machine. TIDEGATE names another program than
target/release/tidegate.

Bounds: median +2 ms, p99 +10 ms at 300 calls a second; the first token of a stream +2 ms; 1,500 calls a second; without
Redis 80 % of the calls, and no refusal by the provider; the fleet within 1.05 of what the limit allows, without a
refusal by the provider; lines at 0.85 of the documents' rate, the first within 3 s, replica and worker in 200 MB.
"""

import asyncio
import contextlib
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("TIDEGATE", str(ROOT / "target/release/tidegate"))
TEMPORAL = os.environ.get("TIDEGATE_TEMPORAL_CLI", str(ROOT / ".tools/bin/temporal"))
LITELLM = "litellm[proxy]==1.106.2"
KEY, MODEL = "sk-a-key-of-the-benchmark", "gpt-6-mini"
TPM, SECONDS, RATE, CONNECTIONS = 400_000, 20, 300, 64


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Stage:
    def __init__(self, simulator, limits, litellm=False, with_worker=False):
        self.folder, self.processes = tempfile.TemporaryDirectory(), []
        folder = pathlib.Path(self.folder.name)
        (folder / "simulator.toml").write_text(simulator or "")
        (folder / "key").write_text(KEY)
        self.bare, self.door, self.temporal, self.metrics, redis = (free_port() for _ in range(5))
        (folder / "tidegate.toml").write_text(f"""
[redis]
url = "redis://127.0.0.1:{redis}"
[worker]
metrics-listen = "off"
[temporal]
address = "127.0.0.1:{self.temporal}"
[storage]
roots = ["file://{folder}"]
[calls]
answers = "file://{folder}/answers"
[serve]
listen = "127.0.0.1:{self.door}"
files = "file://{folder}/files"
[serve.keys.bench]
key-file = "{folder}/key"
[providers.openai]
base-url = "http://127.0.0.1:{self.bare}/v1"
api-key-file = "{folder}/key"
[models."openai:{MODEL}"]
{limits}
""")
        server = shutil.which("redis-server") or shutil.which("valkey-server")
        provider = [PROGRAM, "simulator", "--config", folder / "simulator.toml", "--port"]
        self.start([*(provider if simulator else [sys.executable, __file__, "--provider"]), str(self.bare)], self.bare)
        self.redis = [server, "--port", str(redis), "--save", "", "--dir", folder], redis
        self.start(*self.redis)
        if with_worker:
            self.start([TEMPORAL, "server", "start-dev", "--headless", "--port", str(self.temporal)], self.temporal)
        self.start([PROGRAM, "--config", folder / "tidegate.toml", "serve"], self.door)
        if with_worker:
            os.environ["TIDEGATE_WORKER__METRICS_LISTEN"] = f"127.0.0.1:{self.metrics}"
            self.start([PROGRAM, "--config", folder / "tidegate.toml", "worker"], self.metrics)
        self.doors = {"the bare provider": (self.bare, MODEL), "tidegate serve": (self.door, f"openai:{MODEL}")}
        if litellm:
            port = free_port()
            model = {"model": f"openai/{MODEL}", "api_base": f"http://127.0.0.1:{self.bare}/v1", "api_key": KEY}
            config = {"model_list": [{"model_name": MODEL, "litellm_params": model}], "general_settings": {"master_key": KEY}}
            (folder / "litellm.json").write_text(json.dumps(config))
            program = ROOT / ".tools/litellm/bin/litellm"
            if not program.exists():
                subprocess.run([sys.executable, "-m", "venv", ROOT / ".tools/litellm"], check=True)
                subprocess.run([ROOT / ".tools/litellm/bin/pip", "install", "--quiet", LITELLM], check=True)
            self.start([program, "--config", folder / "litellm.json", "--port", str(port), "--host", "127.0.0.1"], port)
            self.doors["LiteLLM's proxy"] = (port, MODEL)

    def start(self, command, port):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        environment = os.environ | {"RUST_LOG": "warn", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        self.processes.append(subprocess.Popen(command, env=environment, **quiet))
        end = time.monotonic() + 90
        while time.monotonic() < end:
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        raise SystemExit(f"nothing listens at {port}: {command[0]}")

    def account(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.bare}/account") as answer:
            return json.load(answer)["models"].get(MODEL, {})

    def ask(self, path, body=None, kind="application/json"):
        """JSON from the door."""
        url, headers = f"http://127.0.0.1:{self.door}{path}", {"authorization": f"Bearer {KEY}", "content-type": kind}
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=300) as answer:
            return json.load(answer)

    def most(self, process):
        """The most memory that a process had, in MB."""
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1000

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
            process.wait()  # a worker ends its calls, and writes until then
        self.folder.cleanup()


class Connection:
    """One that is kept: a call at a time, HTTP by hand, so that the client costs little."""

    def __init__(self, port, model, **more):
        self.port = port
        asked = {"model": model, "max_tokens": 16, "messages": [{"role": "user", "content": "The tide?"}]} | more
        body = json.dumps(asked)
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {KEY}\r\n"
        self.request = f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()
        self.reader = None

    async def call(self):
        if self.reader is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writer.write(self.request)
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        first = None
        if b"transfer-encoding: chunked" in head:
            while size := int(await self.reader.readline(), 16):
                await self.reader.readexactly(size + 2)
                first = first or time.perf_counter()
            await self.reader.readline()
        else:
            await self.reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
        if not head.startswith(b"http/1.1 200"):
            raise SystemExit(head.decode())
        return first or time.perf_counter()


async def open_loop(port, model, **more):
    """The median and the 99th percentile of the milliseconds until an answer, or the first part of a stream."""
    idle, times = asyncio.Queue(), []
    for _ in range(CONNECTIONS):
        idle.put_nowait(Connection(port, model, **more))

    async def one(due):
        connection = await idle.get()
        times.append(await connection.call() - due)
        idle.put_nowait(connection)

    begun, tasks = time.perf_counter(), []
    for number in range(RATE * SECONDS):
        due = begun + number / RATE
        await asyncio.sleep(max(0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(one(due)))
    await asyncio.gather(*tasks)
    times = sorted(times[RATE:])
    return [1e3 * statistics.median(times), 1e3 * times[int(len(times) * 0.99)]]


async def closed_loop(port, model):
    calls, end = 0, time.perf_counter() + SECONDS

    async def one():
        nonlocal calls
        connection = Connection(port, model)
        while time.perf_counter() < end:
            await connection.call()
            calls += 1

    await asyncio.gather(*(one() for _ in range(CONNECTIONS)))
    return calls / SECONDS


def beside(litellm):
    stage = Stage("mean-output-tokens = 5\noutput-spread = 0.0\n", "rpm = 6_000_000\ntpm = 6_000_000_000", litellm)
    print("| | median at 300/s | p99 at 300/s | calls a second, closed loop |\n|---|---|---|---|")
    for name, (port, model) in stage.doors.items():
        median, p99 = asyncio.run(open_loop(port, model))
        print(f"| {name} | {median:.1f} ms | {p99:.1f} ms | {asyncio.run(closed_loop(port, model)):.0f} |", flush=True)
    stage.stop()


def provide_streams(port):
    """A provider that answers each call with a stream of ten events at once."""
    event = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    choice = {"index": 0, "delta": {"content": "tide "}, "finish_reason": None}
    usage = {"prompt_tokens": 4, "completion_tokens": 10, "total_tokens": 14}
    events = [event | {"choices": [choice]}] * 9 + [event | {"choices": [choice | {"delta": {}, "finish_reason": "stop"}]}]
    texts = [f"data: {json.dumps(one)}\n\n" for one in [*events, event | {"choices": [], "usage": usage}]]
    texts.append("data: [DONE]\n\n")
    head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    answer = (head + "".join(f"{len(one):x}\r\n{one}\r\n" for one in texts) + "0\r\n\r\n").encode()

    async def serve(reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
                writer.write(answer)

    async def run():
        async with await asyncio.start_server(serve, "127.0.0.1", port) as server:
            await server.serve_forever()

    asyncio.run(run())


def streams():
    stage = Stage(None, "rpm = 6_000_000\ntpm = 6_000_000_000")
    print(f"| first token of a stream, {RATE} a second | median | p99 |\n|---|---|---|")
    for name, (port, model) in stage.doors.items():
        median, p99 = asyncio.run(open_loop(port, model, stream=True))
        print(f"| {name} | {median:.1f} ms | {p99:.1f} ms |", flush=True)
    stage.stop()


def faults():
    """100 calls a second are allowed, and 128 clients want more; clients of a replica that is gone go to the other."""
    limit = 'rpm = 6000\nalgorithm = "token-bucket"\nbucket = "5s"\n'
    stage = Stage(f'latency = {{ base = "200ms", per-output-token = "0s", jitter = 0 }}\n[default]\n{limit}', "rpm = 6000\nburst = \"5s\"")
    redis, second = stage.processes[1], free_port()
    os.environ["TIDEGATE_SERVE__LISTEN"] = f"127.0.0.1:{second}"
    stage.start([PROGRAM, "--config", pathlib.Path(stage.folder.name) / "tidegate.toml", "serve"], second)
    ports, ended, broken, end = [stage.door, second], [], [], time.perf_counter() + 150

    async def client(number):
        connection = None
        while time.perf_counter() < end:
            try:
                connection = connection or Connection(ports[number % len(ports)], f"openai:{MODEL}")
                ended.append(await connection.call())
            except (OSError, asyncio.IncompleteReadError):
                broken.append(time.perf_counter())
                connection = None

    async def phases():
        clients = [asyncio.create_task(client(number)) for number in range(2 * CONNECTIONS)]
        await asyncio.sleep(20)  # the bucket of the start is used

        async def phase(name, seconds):
            before, begun = stage.account()["ok"], time.perf_counter()
            await asyncio.sleep(seconds)
            rate = (stage.account()["ok"] - before) / (time.perf_counter() - begun)
            print(f"{name}: {rate:.0f} calls a second", flush=True)

        await phase("all well, 20 s", 20)
        redis.kill()
        redis.wait()
        await phase("Redis away, 60 s", 60)
        stage.start(*stage.redis)
        await phase("Redis back and empty, 20 s", 20)
        ports.remove(second)
        stage.processes[-2].kill()
        await phase("one replica killed, 20 s", 20)
        await asyncio.gather(*clients)

    asyncio.run(phases())
    account = stage.account()
    print(f"{len(ended)} calls, {len(broken)} broken off; the provider refused {sum(account['refused'].values())}")
    stage.stop()


def fleet(calls, litellm):
    """200 clients; what they may use of a minute is the limit, and a bucket of a minute is there at the start."""
    sys.path.insert(0, str(ROOT / ".tools/sdks"))
    import openai

    limit = f'tpm = {TPM}\nalgorithm = "token-bucket"\nbucket = "60s"\n'
    latency = 'latency = { base = "1s", per-output-token = "15ms", jitter = 0 }\nmean-output-tokens = 100\n'
    for name in ["tidegate serve", "the bare provider"] + ["LiteLLM's proxy"] * litellm:
        stage = Stage(f"{latency}[default]\n{limit}", f"tpm = {TPM}", litellm)
        port, model = stage.doors[name]
        client = openai.AsyncOpenAI(api_key=KEY, base_url=f"http://127.0.0.1:{port}/v1")
        gate, failed = asyncio.Semaphore(200), []

        async def one(number):
            text = f"Report {number}. " + "In the harbour the master writes about the tide and the ships. " * 130
            async with gate:
                try:
                    await client.chat.completions.create(
                        model=model, max_tokens=300, messages=[{"role": "user", "content": text}]
                    )
                except openai.OpenAIError as error:
                    failed.append(type(error).__name__)

        async def all_of_them():
            async with client:
                await asyncio.gather(*map(one, range(calls)))

        begun = time.monotonic()
        asyncio.run(all_of_them())
        took, account = time.monotonic() - begun, stage.account()
        used = sum(account["refused"].values())
        print(f"{name}: {calls - len(failed)} of {calls} answered in {took:.0f} s, {used} refused by the provider; {account}")
        stage.stop()


def lines(count):
    """A provider that binds nothing: a batch of the door, and then the same texts as documents of `tidegate run`."""
    stage = Stage("mean-output-tokens = 5\noutput-spread = 0.0\n", "rpm = 6_000_000\ntpm = 6_000_000_000", with_worker=True)
    folder, (serve, worker) = pathlib.Path(stage.folder.name), stage.processes[-2:]
    text = "In the harbour the master writes about the tide and the ships. " * 61
    model = f"openai:{MODEL}"
    body = {"model": model, "max_tokens": 16, "messages": [{"role": "user", "content": text}]}
    line = {"method": "POST", "url": "/v1/chat/completions", "body": body}
    requests = "".join(json.dumps({"custom_id": str(number)} | line) + "\n" for number in range(count))
    border = uuid.uuid4().hex
    part = f"--{border}\r\ncontent-disposition: form-data; name="
    form = f'{part}"purpose"\r\n\r\nbatch\r\n{part}"file"; filename="requests.jsonl"\r\n\r\n{requests}\r\n--{border}--\r\n'
    begun = time.monotonic()
    file = stage.ask("/v1/files", form.encode(), f"multipart/form-data; boundary={border}")["id"]
    uploaded, begun = time.monotonic() - begun, time.monotonic()
    asked = {"input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    batch, first = stage.ask("/v1/batches", json.dumps(asked).encode()), None
    while batch["status"] not in ("completed", "failed", "cancelled", "expired"):
        time.sleep(0.1)
        if not first and stage.account().get("admitted"):
            first = time.monotonic() - begun
        batch = stage.ask(f"/v1/batches/{batch['id']}")
    took = time.monotonic() - begun
    print(f"{count} lines: {batch['status']}, {batch['request_counts']}; uploaded in {uploaded:.1f} s, first call after {first:.1f} s,")
    print(f"{took:.1f} s in all, {count / took:.0f} a second; replica {stage.most(serve):.0f} MB, worker {stage.most(worker):.0f} MB")
    (folder / "records.jsonl").write_text("".join(json.dumps({"id": number, "text": text}) + "\n" for number in range(count)))
    command = [PROGRAM, "--config", folder / "tidegate.toml", "run", folder / "records.jsonl", "--output", folder / "out"]
    command += ["--model", model, "--records", "--record-id", "id", "--record-text", "text", "--max-output-tokens", "16", "--instructions", "The tide?"]
    begun = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    took = time.monotonic() - begun
    print(f"{count} documents: {took:.1f} s in all, {count / took:.0f} a second; worker {stage.most(worker):.0f} MB at most")
    stage.stop()


if __name__ == "__main__":
    arguments = [one for one in sys.argv[1:] if one != "--litellm"]
    with_litellm = "--litellm" in sys.argv
    if arguments[:1] == ["fleet"]:
        fleet(int(arguments[1]) if arguments[1:] else 700, with_litellm)
    elif arguments[:1] == ["--provider"]:
        provide_streams(int(arguments[1]))
    elif arguments[:1] in (["streams"], ["faults"]):
        {"streams": streams, "faults": faults}[arguments[0]]()
    elif arguments[:1] == ["lines"]:
        lines(int(arguments[1]) if arguments[1:] else 50_000)
    else:
        beside(with_litellm)
