"""A pipeline that others have written for OpenAI's batch endpoint, unchanged but for its base URL."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from conftest import ROOT, Door, Simulator

LINES = 40


def test_instructors_batch_processor(
    large: Path,
    worker: Callable[[str, str], Path],
    serve: Callable[..., Door],
    simulator: Callable[[str], Simulator],
    tmp_path: Path,
) -> None:
    provider = simulator("mean-output-tokens = 20\n")
    config = worker(f"{provider.url}/v1", "rpm = 6000").read_text()
    door = serve(config, files=f'files = "{tmp_path.as_uri()}/files"\n')
    told = subprocess.run(
        [large / "python", ROOT / "clients/python/tests/instructor_batch.py", "openai:m", str(LINES)],
        env={**os.environ, "OPENAI_BASE_URL": f"{door.url}/v1", "OPENAI_API_KEY": Door.KEY},
        stdout=subprocess.PIPE,
        check=True,
        timeout=180,
    )
    came = json.loads(told.stdout.splitlines()[-1])
    assert came["seen"][-1] == "completed" and came["listed"] == [True], came
    assert came["ids"] == [f"request-{number}" for number in range(LINES)]
    assert came["tides"] == ["Tide"] * LINES, came
    assert provider.account("m")["ok"] == LINES
