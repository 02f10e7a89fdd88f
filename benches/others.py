#!/usr/bin/env python3
"""The documents of benches/fleet.rs through what people use today: the vendor's own SDK with its
default retries, and LiteLLM's router with its limits shared through Redis.

    cargo build && benches/others.py 100        (or 700; some ten minutes for both)

The provider is `tidegate simulator` with the limits of the fleet's `token-bucket`: 400,000 tokens a
minute, a bucket of a minute, calls of 1 s and 15 ms for each token of output. All documents are asked
for at once; a call that fails when its own retries are spent is made again, until each document has its answer, because
that is what it takes to come to the same result. Calls and refusals are the simulator's account.
Installs what it needs into .tools/others.
"""

import asyncio
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
PINNED = ["anthropic==2.11.0", "litellm==1.106.2", "redis==8.1.0"]
MODEL, LIMIT, TOKENS, MAX_OUTPUT = "claude-sonnet-5", 400_000, 1_950, 1_024
INSTRUCTIONS = "Summarise in three points."
SIMULATOR = f"""
latency = {{ base = "1s", per-output-token = "15ms", jitter = 0 }}
[default]
tpm = {LIMIT}
algorithm = "token-bucket"
bucket = "60s"
"""


def installed():
    """Goes on in a Python that has the peers."""
    folder = ROOT / ".tools" / "others"
    python = folder / "bin" / "python"
    if pathlib.Path(sys.prefix) == folder:
        return
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PINNED], check=True)
    # LiteLLM asks the internet for prices otherwise.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.execv(python, [str(python), *sys.argv])


def text(number):
    """The documents of the fleet, word by word."""
    parts, length = [f"# Report {number}\n\n"], 0
    line = 0
    while (length := sum(map(len, parts))) < TOKENS * 43 // 10:
        ship = line * 7 + number
        parts.append(f"In line {line} of report {number} the harbour master writes about the tide and ship {ship}. ")
        line += 1
    return "".join(parts)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def sdk(base_url, _redis):
    import anthropic

    client = anthropic.AsyncAnthropic(api_key="simulated", base_url=base_url)

    async def call(document):
        messages = [{"role": "user", "content": f"{INSTRUCTIONS}\n\n{document}"}]
        await client.messages.create(model=MODEL, max_tokens=MAX_OUTPUT, messages=messages)

    return call


def litellm_router(base_url, redis_port):
    import litellm

    litellm.suppress_debug_info = True
    deployment = {
        "model": f"anthropic/{MODEL}",
        "api_key": "simulated",
        "api_base": base_url,
        "tpm": LIMIT,
    }
    router = litellm.Router(
        model_list=[{"model_name": "tides", "litellm_params": deployment}],
        routing_strategy="usage-based-routing-v2",
        redis_host="127.0.0.1",
        redis_port=redis_port,
    )

    async def call(document):
        messages = [{"role": "user", "content": f"{INSTRUCTIONS}\n\n{document}"}]
        await router.acompletion(model="tides", messages=messages, max_tokens=MAX_OUTPUT)

    return call


async def batch(call, documents):
    async def until_answered(document):
        while True:
            try:
                return await call(document)
            except Exception:  # Whatever its retries did not mend.
                await asyncio.sleep(1)

    await asyncio.gather(*map(until_answered, documents))


def run(name, way, documents):
    port, redis_port = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "simulator.toml")
        config.write_text(SIMULATOR)
        program = os.environ.get("TIDEGATE", str(ROOT / "target" / "debug" / "tidegate"))
        redis = shutil.which("redis-server") or shutil.which("valkey-server")
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started = [
            subprocess.Popen([program, "simulator", "--port", str(port), "--config", config], **quiet),
            subprocess.Popen([redis, "--port", str(redis_port), "--save", "", "--dir", folder], **quiet),
        ]
        try:
            base_url = f"http://127.0.0.1:{port}"
            for _ in range(100):
                try:
                    urllib.request.urlopen(f"{base_url}/healthz")
                    break
                except OSError:
                    time.sleep(0.1)
            begun = time.monotonic()
            asyncio.run(batch(way(base_url, redis_port), documents))
            took = time.monotonic() - begun
            with urllib.request.urlopen(f"{base_url}/account") as answer:
                account = json.load(answer)["models"][MODEL]
        finally:
            for process in started:
                process.kill()
                process.wait()
    refused = sum(account["refused"].values())
    calls = account["requests"]
    print(f"| {name} | {len(documents)} | {took:.1f} | {refused} | {calls / len(documents):.2f} |", flush=True)


def main():
    installed()
    documents = [text(number) for number in range(int(sys.argv[1]) if len(sys.argv) > 1 else 100)]
    print("| way | documents | s | 429s | calls a document |\n|---|---|---|---|---|", flush=True)
    run("anthropic SDK, default retries", sdk, documents)
    run("LiteLLM router, tpm in Redis", litellm_router, documents)


if __name__ == "__main__":
    main()
