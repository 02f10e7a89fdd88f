"""What the tests need: a Redis, Temporal's dev server, and the program with its simulated provider.

What is missing is skipped aloud, and a failure with ``TIDEGATE_REQUIRE_SERVICES=1``.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
_names = itertools.count()


def lacking(what: str) -> None:
    if os.environ.get("TIDEGATE_REQUIRE_SERVICES") == "1":
        pytest.fail(f"required by TIDEGATE_REQUIRE_SERVICES: {what}")
    pytest.skip(f"SKIPPED: {what}")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def until_open(port: int, process: subprocess.Popen[bytes], within: float = 60.0) -> None:
    end = time.monotonic() + within
    while time.monotonic() < end:
        assert process.poll() is None, "the server ended"
        with socket.socket() as client:
            client.settimeout(1.0)
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens at {port}")


def ended(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@pytest.fixture
def prefix() -> str:
    """A key prefix that no other test has."""
    return f"test-{os.getpid()}-{next(_names)}"


@pytest.fixture(scope="session")
def redis() -> Iterator[str]:
    server = shutil.which("redis-server") or shutil.which("valkey-server")
    if server is None:
        lacking("neither redis-server nor valkey-server is on PATH")
        return
    port = free_port()
    command = [server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    until_open(port, process)
    yield f"redis://127.0.0.1:{port}"
    ended(process)


@pytest.fixture(scope="session")
def temporal() -> Iterator[str]:
    cli = os.environ.get("TIDEGATE_TEMPORAL_CLI") or shutil.which("temporal")
    if cli is None:
        lacking("the Temporal CLI is neither on PATH nor in TIDEGATE_TEMPORAL_CLI")
        return
    port = free_port()
    command = [cli, "server", "start-dev", "--headless", "--port", str(port), "--log-level", "error"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until_open(port, process)
    yield f"127.0.0.1:{port}"
    ended(process)


@pytest.fixture(scope="session")
def program() -> Path:
    stated = os.environ.get("TIDEGATE_PROGRAM")
    path = Path(stated) if stated else ROOT / "target/debug/tidegate"
    if not path.exists():
        lacking(f"{path} is not there: `make python` builds it")
    return path


#: Large packages, in an environment of their own.
LARGE = ROOT / ".tools/python-large/bin"


@pytest.fixture
def large() -> Path:
    """The folder of the programs of Airflow, LiteLLM, moto and the others of requirements-large.in."""
    if not (LARGE / "python").exists():
        pytest.skip("SKIPPED: requirements-large.txt is not there: scripts/setup.sh --python-large fetches it")
    return LARGE


class Simulator:
    """The provider's stand-in, which counts for itself."""

    def __init__(self, url: str) -> None:
        self.url = url

    def account(self, model: str) -> dict[str, Any]:
        account: dict[str, Any] = self._models()[model]
        return account

    def asked(self, model: str) -> int:
        """Calls so far."""
        requests: int = self._models().get(model, {}).get("requests", 0)
        return requests

    def _models(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/account") as reply:
            models: dict[str, Any] = json.load(reply)["models"]
        return models

    def refused(self, model: str) -> int:
        """Its 429s for a limit."""
        return sum(self.account(model)["refused"].values())


@pytest.fixture
def simulator(program: Path, tmp_path: Path) -> Iterator[Callable[[str], Simulator]]:
    processes: list[subprocess.Popen[bytes]] = []

    def start(config: str) -> Simulator:
        file, port = tmp_path / f"simulator-{len(processes)}.toml", free_port()
        file.write_text(config)
        command = [program, "simulator", "--port", str(port), "--config", file]
        processes.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        until_open(port, processes[-1])
        return Simulator(f"http://127.0.0.1:{port}")

    yield start
    for process in processes:
        ended(process)


class Door:
    """``tidegate serve``, whose key is ``KEY``."""

    KEY = "key-of-the-tests"

    def __init__(self, url: str) -> None:
        self.url = url


@pytest.fixture
def serve(program: Path, tmp_path: Path) -> Iterator[Callable[[str], Door]]:
    """Starts a door by a configuration without its own sections."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(config: str, files: str = "") -> Door:
        port, file = free_port(), tmp_path / f"door-{len(processes)}.toml"
        file.write_text(f'{config}\n[serve]\nlisten = "127.0.0.1:{port}"\n{files}[serve.keys.web]\nkey-env = "DOOR_KEY"\n')
        environment = {**os.environ, "DOOR_KEY": Door.KEY, "SIMULATED_KEY": "sk-x"}
        with file.with_suffix(".log").open("wb") as log:
            processes.append(subprocess.Popen([program, "serve", "--config", file], env=environment, stderr=log))
        until_open(port, processes[-1])
        return Door(f"http://127.0.0.1:{port}")

    yield start
    for process in processes:
        ended(process)


@pytest.fixture
def door(serve: Callable[[str], Door], redis: str, prefix: str, tmp_path: Path) -> Callable[..., Door]:
    """Starts a door at a provider's base URL, for one of its models with these limits; each is a fleet of its own."""
    fleets = itertools.count()

    def start(url: str, model: str, limits: str, more: str = "") -> Door:
        return serve(
            f'[redis]\nurl = "{redis}"\nkey-prefix = "{prefix}-{next(fleets)}"\n[worker]\nmetrics-listen = "off"\n'
            f'[storage]\nroots = ["{tmp_path.as_uri()}"]\n[gate]\njitter = "100ms"\n'
            f'[providers.openai]\nbase-url = "{url}"\napi-key-env = "SIMULATED_KEY"\n'
            f'[models."openai:{model}"]\n{limits}\n{more}'
        )

    return start


@pytest.fixture
def worker(
    program: Path, redis: str, temporal: str, prefix: str, tmp_path: Path
) -> Iterator[Callable[[str, str], Path]]:
    """Starts a worker on the task queue ``prefix`` for ``openai:m`` at a provider's base URL, with these limits; its
    configuration."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(url: str, limits: str) -> Path:
        config = tmp_path / "tidegate.toml"
        config.write_text(
            f'[temporal]\naddress = "{temporal}"\ntask-queue = "{prefix}"\n'
            f'[redis]\nurl = "{redis}"\nkey-prefix = "{prefix}"\n'
            f'[storage]\nroots = ["{tmp_path.as_uri()}"]\n'
            '[worker]\nmetrics-listen = "off"\n'
            f'[providers.openai]\nbase-url = "{url}"\napi-key-env = "SIMULATED_KEY"\n'
            f'[models."openai:m"]\n{limits}\n'
        )
        environment = {**os.environ, "SIMULATED_KEY": "sk-x"}
        with (tmp_path / "worker.log").open("wb") as log:
            processes.append(subprocess.Popen([program, "worker", "--config", config], env=environment, stderr=log))
        return config

    yield start
    for process in processes:
        ended(process)
