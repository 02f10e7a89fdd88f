"""The pages of docs/starts, each run as it stands, in a clean environment and a folder with a team's own documents.

Stand-ins: the simulator is the provider, moto is S3, the wheel of this checkout and what setup has fetched are PyPI and
npm. Keys, buckets and ports are the pages' own, but for a port that must be free here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import ROOT, Simulator, ended, free_port, lacking, until_open

MOST_COMMANDS, MOST_SECONDS = 12, 3_600
SMALL = Path(sys.prefix) / "bin"
NODE = ROOT / ".tools/typescript/node_modules"
NAMES = ["harbour.md", "tides.md", "winds.md"]
PROVIDER = "mean-output-tokens = 20\n"


def block(page: str) -> str:
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / f"docs/starts/{page}.md").read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 1, "a page has one block"
    return str(blocks[0])


def commands(code: str) -> list[str]:
    """Lines, without the documents that follow some of them."""
    found, end = [], None
    for line in code.splitlines():
        if end is not None:
            end = None if line == end else end
        elif line.strip():
            found.append(line)
            document = re.search(r"<<'(\w+)'", line)
            end = document[1] if document else None
    return found


def executable(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")
    path.chmod(0o755)


class Team:
    """A folder, and an environment in which a page's block runs."""

    def __init__(self, folder: Path, packages: Path, wheel: Path) -> None:
        self.folder = folder / "team"
        self.environment = {
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            # What a page installs must be there already.
            "PIP_NO_INDEX": "1",
            "TIDEGATE_TEMPORAL_CLI": os.environ.get("TIDEGATE_TEMPORAL_CLI") or str(shutil.which("temporal")),
        }
        (self.folder / "documents").mkdir(parents=True)
        for name in NAMES:
            (self.folder / "documents" / name).write_text(f"# About {name}\n\nHigh water was at six.\n", "utf-8")
        venv = folder / "venv"
        subprocess.run([packages / "python", "-m", "venv", "--without-pip", venv], check=True)
        installed = [SMALL / "python", "-m", "pip", "--python", venv / "bin/python"]
        subprocess.run([*installed, "install", "--quiet", "--no-index", "--no-deps", "--ignore-installed", wheel], check=True)
        # Behind the environment's own packages are those that setup fetched, with their programs.
        library = next((packages.parent / "lib").glob("python*/site-packages"))
        mine = next((venv / "lib").glob("python*/site-packages"))
        (mine / "fetched.pth").write_text(str(library))
        for script in packages.iterdir():
            if script.is_file() and not (venv / "bin" / script.name).exists():
                text = script.read_bytes()
                if text.startswith(b"#!") and b"python" in text.partition(b"\n")[0]:
                    rest = text.partition(b"\n")[2].decode()
                    executable(venv / "bin" / script.name, f"#!{venv}/bin/python\n{rest}")
        executable(venv / "bin/pip", f'#!/bin/sh\nexec {SMALL}/python -m pip --python {venv}/bin/python "$@"\n')
        servers = {str(Path(found).parent) for name in ("redis-server", "valkey-server") if (found := shutil.which(name))}
        self.environment["PATH"] = ":".join([str(venv / "bin"), *servers, "/usr/bin", "/bin"])

    def run(self, page: str, **addresses: str) -> str:
        """What the page's block prints; ``addresses`` stand in the place of the page's own."""
        code = block(page)
        for shown, real in addresses.items():
            assert shown in code, shown
            code = code.replace(shown, real)
        assert len(commands(code)) <= MOST_COMMANDS, commands(code)
        began, out, err = time.monotonic(), self.folder.parent / "out", self.folder.parent / "err"
        with out.open("wb") as told, err.open("wb") as said:
            shell = subprocess.Popen(
                ["sh", "-e", "-c", code],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=said,
                start_new_session=True,
            )
            try:
                code_of_exit = shell.wait(300)
            finally:
                self._end(shell.pid)
        seconds = time.monotonic() - began
        print(f"{page}: {len(commands(code))} commands, {seconds:.0f} s here, without downloads")
        assert code_of_exit == 0, out.read_text("utf-8")[-2_000:] + err.read_text("utf-8")[-4_000:]
        assert seconds < MOST_SECONDS
        return out.read_text("utf-8")

    def _end(self, group: int) -> None:
        """Ends what the block has left running; the stack removes its file when it begins to stop."""
        for how, within in ((signal.SIGTERM, 20.0), (signal.SIGKILL, 5.0)):
            end = time.monotonic() + within
            try:
                os.killpg(group, how)
                while time.monotonic() < end:
                    os.killpg(group, 0)
                    time.sleep(0.05)
            except ProcessLookupError:
                return


@pytest.fixture
def team(program: Path, redis: str, temporal: str, tmp_path: Path) -> Callable[[Path], Team]:
    """Makes the environment from the packages beside a folder of programs."""
    wheel = os.environ.get("TIDEGATE_WHEEL")
    if wheel is None:
        lacking("TIDEGATE_WHEEL names no wheel of tidegate: `make python` packs one")
        raise AssertionError
    return lambda packages: Team(tmp_path, packages, Path(wheel))


@pytest.fixture
def provider(simulator: Callable[[str], Simulator]) -> Simulator:
    return simulator(PROVIDER)


def at_openai(team: Team, provider: Simulator) -> None:
    """Puts the provider in OpenAI's place, for tidegate and for OpenAI's own SDK."""
    team.environment["TIDEGATE_PROVIDERS__OPENAI__BASE_URL"] = f"{provider.url}/v1"
    team.environment["OPENAI_BASE_URL"] = f"{provider.url}/v1"


def answered(provider: Simulator, model: str, calls: int) -> None:
    account = provider.account(model)
    assert (account["ok"], provider.refused(model)) == (calls, 0)


def lines_of(told: str) -> list[str]:
    """The documents that have a line of their own, in order."""
    found = [re.match(r"\W*(\w+\.md)\W+\w", line) for line in told.splitlines()]
    return sorted(match[1] for match in found if match)


@pytest.fixture
def s3(large: Path, tmp_path: Path) -> Iterator[str]:
    """moto's S3, with a bucket that holds three PDFs."""
    port = free_port()
    command = [large / "moto_server", "-H", "127.0.0.1", "-p", str(port)]
    with (tmp_path / "moto.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    until_open(port, process)
    put = (
        "import boto3, sys\n"
        "s3 = boto3.client('s3', endpoint_url=sys.argv[1], region_name='eu-central-1', aws_access_key_id='x',"
        " aws_secret_access_key='x')\n"
        "s3.create_bucket(Bucket='my-bucket', CreateBucketConfiguration={'LocationConstraint': 'eu-central-1'})\n"
        "for number in range(3):\n"
        "    s3.upload_file(sys.argv[2], 'my-bucket', f'contracts/{number}.pdf')\n"
    )
    document = tmp_path / "contract.pdf"
    document.write_bytes(pdf("The lessee keeps the quay in repair."))
    subprocess.run([large / "python", "-c", put, f"http://127.0.0.1:{port}", document], check=True)
    yield f"http://127.0.0.1:{port}"
    ended(process)


def pdf(text: str) -> bytes:
    """A document of one page."""
    drawn = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    whole, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(whole))
        whole += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    start = b"xref\n0 6\n0000000000 65535 f \n%strailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
    return whole + start % (table, len(whole))


def test_s3_and_azure(team: Callable[[Path], Team], large: Path, s3: str, provider: Simulator) -> None:
    ours = team(large)
    ours.environment |= {
        "AWS_ENDPOINT": s3,
        "AWS_ENDPOINT_URL": s3,
        "AWS_ALLOW_HTTP": "true",
        "TIDEGATE_PROVIDERS__AZURE__BASE_URL": provider.url,
    }
    told = ours.run("s3-and-azure")
    for number in range(3):
        assert re.search(rf"^{number}\.pdf \w", told, re.MULTILINE), told
    answered(provider, "summaries", 3)


def test_langchain_and_celery(team: Callable[[Path], Team], provider: Simulator) -> None:
    pytest.importorskip("langchain_openai")
    pytest.importorskip("celery")
    ours = team(SMALL)
    at_openai(ours, provider)
    told = ours.run("langchain-and-celery")
    assert lines_of(told) == sorted(NAMES * 2), told
    answered(provider, "gpt-6-mini", 6)


def test_typescript(team: Callable[[Path], Team], provider: Simulator) -> None:
    node = shutil.which("node")
    if node is None or not (NODE / ".bin/tsc").exists():
        pytest.skip("SKIPPED: Temporal's TypeScript SDK is not there: `make door` fetches it")
    ours = team(SMALL)
    at_openai(ours, provider)
    programs = ours.folder.parent / "node"
    programs.mkdir()
    (programs / "node").symlink_to(node)
    # In npm's place: the packages must be the ones that `make door` has fetched.
    executable(
        programs / "npm",
        f'#!/bin/sh\nset -e\n[ "$1" = install ]\nshift\n'
        f'for name; do [ -d "{NODE}/${{name%@[0-9]*}}" ]; done\nln -s {NODE} node_modules\n',
    )
    executable(programs / "npx", '#!/bin/sh\nname=$1\nshift\nexec "node_modules/.bin/$name" "$@"\n')
    ours.environment["PATH"] = f"{programs}:{ours.environment['PATH']}"
    told = ours.run("typescript")
    assert lines_of(told) == NAMES, told
    answered(provider, "gpt-6-mini", 3)


def test_litellm(team: Callable[[Path], Team], large: Path, provider: Simulator) -> None:
    ours = team(large)
    ours.environment |= {"OPENAI_BASE_URL": f"{provider.url}/v1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    told = ours.run("litellm", **{"4000": str(free_port())})
    results = [json.loads(line) for line in told.splitlines() if line.startswith('{"id"')]
    assert [it["id"] for it in results] == NAMES and all(it["answer"] and it["cost_usd"] > 0 for it in results), told
    answered(provider, "gpt-6-mini", 3)


def test_notebook_and_airflow(team: Callable[[Path], Team], large: Path, provider: Simulator) -> None:
    ours = team(large)
    at_openai(ours, provider)
    told = ours.run("notebook-and-airflow", **{"rpm=500": f'base_url="{provider.url}/v1", rpm=500'})
    assert lines_of(told) == NAMES, told
    results = [json.loads(line) for line in (ours.folder / "out/results.jsonl").read_text("utf-8").splitlines()]
    assert [it["id"] for it in results] == NAMES and all(it["answer"] for it in results)
    answered(provider, "gpt-6-mini", 6)


@pytest.mark.parametrize("page", sorted(path.stem for path in (ROOT / "docs/starts").glob("*.md")))
def test_a_page_is_short(page: str) -> None:
    assert 1 <= len(commands(block(page))) <= MOST_COMMANDS
    assert f"test_{page.replace('-', '_')}" in globals(), "a test runs each page"


@pytest.mark.parametrize(
    "what",
    ["packages as PyPI and npm give them (uvx, pip, npx)", "Temporal Cloud", "a login of AWS by SSO", "a vendor's account"],
)
def test_what_has_no_stand_in(what: str) -> None:
    pytest.skip(f"SKIPPED: {what}: no test of docs/starts tries it")
