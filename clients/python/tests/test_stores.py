"""``tidegate doctor STORE`` before stand-ins of S3 (moto) and Azure (Azurite); for Google's XML API no registry has one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from conftest import ROOT, ended, free_port, until_open

AZURITE = ROOT / ".tools/azurite/node_modules/.bin/azurite-blob"
#: Azurite's own, which stand in its documentation.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
ALL = {"list": True, "read": True, "create_if_absent": True, "write": True, "delete": True}


class Doctor:
    """What the program says of a place, with no variables but those that are given."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._program, self._folder = program, folder

    def says(self, place: str, **variables: str) -> dict[str, Any]:
        environment = {"HOME": str(self._folder), "PATH": os.environ["PATH"], **variables}
        command = [self._program, "doctor", place, "--json"]
        told = subprocess.run(command, env=environment, cwd=self._folder, stdout=subprocess.PIPE, timeout=60)
        found: dict[str, Any] = json.loads(told.stdout)
        assert told.returncode == any(check["state"] == "fail" for check in found["checks"]), found
        return found

    def remedy(self, place: str, check: str, **variables: str) -> str:
        found = self.says(place, **variables)
        return next(str(it["remedy"]) for it in found["checks"] if it["name"] == check and it["state"] == "fail")


@pytest.fixture
def doctor(program: Path, tmp_path: Path) -> Doctor:
    return Doctor(program, tmp_path)


@pytest.fixture
def s3(large: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    """moto's S3 with the bucket ``documents``; the variables that lead to it."""
    port = free_port()
    with (tmp_path / "moto.log").open("wb") as log:
        process = subprocess.Popen([large / "moto_server", "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log)
    until_open(port, process)
    urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/documents", method="PUT")).close()
    yield {"AWS_ENDPOINT": f"http://127.0.0.1:{port}", "AWS_ALLOW_HTTP": "true"}
    ended(process)


@pytest.fixture
def azure(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Azurite with the container ``documents``; the variables that lead to it."""
    if not AZURITE.exists() or shutil.which("node") is None:
        pytest.skip("SKIPPED: Azurite is not there: scripts/setup.sh --python-large fetches it where npm is")
    port = free_port()
    # A newer version of the API than Azurite knows is as good.
    command = [AZURITE, "--silent", "--disableTelemetry", "--inMemoryPersistence", "--skipApiVersionCheck", "--blobPort", str(port)]
    with (tmp_path / "azurite.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log)
    until_open(port, process, 120)
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2023-11-03"}
    named = "".join(f"{name}:{value}\n" for name, value in headers.items())
    headers["authorization"] = f"SharedKey {ACCOUNT}:" + signed(
        "PUT" + "\n" * 12 + named + f"/{ACCOUNT}/{ACCOUNT}/documents\nrestype:container"
    )
    url = f"http://127.0.0.1:{port}/{ACCOUNT}"
    asked = urllib.request.Request(f"{url}/documents?restype=container", method="PUT", headers=headers)
    urllib.request.urlopen(asked).close()
    yield {"AZURE_STORAGE_ENDPOINT": url, "AZURE_ALLOW_HTTP": "true", "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT}
    ended(process)


def signed(text: str) -> str:
    return base64.b64encode(hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)).decode()


def sas(rights: str, end: str) -> str:
    """A shared access signature of the container."""
    version = "2022-11-02"
    stated = [rights, "", end, f"/blob/{ACCOUNT}/documents", "", "", "", version, "c", *[""] * 7]
    return urlencode({"sp": rights, "se": end, "sv": version, "sr": "c", "sig": signed("\n".join(stated))})


def test_s3(doctor: Doctor, s3: dict[str, str]) -> None:
    place = "s3://documents/in/"
    key = {**s3, "AWS_ACCESS_KEY_ID": "AKIAX\n", "AWS_SECRET_ACCESS_KEY": "x\n"}
    found = doctor.says(place, **key)
    assert (found["may"], found["read_only"], found["credential"]["kind"]) == (ALL, False, "access_key")
    temporary = doctor.says(place, **key, AWS_SESSION_TOKEN="t\n")
    assert (temporary["may"], temporary["credential"]["kind"]) == (ALL, "temporary_key")
    assert "AWS_ENDPOINT" in doctor.remedy("s3://other/in/", "list", **key)
    assert "AWS_SECRET_ACCESS_KEY, too" in doctor.remedy(place, "credential", **s3, AWS_ACCESS_KEY_ID="AKIAX")


def test_azure(doctor: Doctor, azure: dict[str, str]) -> None:
    place, end = "az://documents/in/", "2099-01-01T00:00:00Z"
    found = doctor.says(place, **azure, AZURE_STORAGE_ACCOUNT_KEY=f"{KEY}\n")
    assert (found["may"], found["read_only"], found["credential"]["kind"]) == (ALL, False, "account_key")
    assert "the key is one of this account" in doctor.remedy(place, "list", **azure, AZURE_STORAGE_ACCOUNT_KEY="AAAA")
    gone = doctor.remedy("az://other/in/", "list", **azure, AZURE_STORAGE_ACCOUNT_KEY=KEY)
    assert "container" in gone and "AWS" not in gone
    found = doctor.says(place, **azure, AZURE_STORAGE_SAS_TOKEN=sas("rcwdl", end))
    assert (found["may"], found["credential"]["kind"]) == (ALL, "sas")
    assert doctor.says(place, **azure, AZURE_STORAGE_SAS_TOKEN=sas("rl", end))["read_only"] is True
    old = doctor.remedy(place, "list", **azure, AZURE_STORAGE_SAS_TOKEN=sas("rl", "2020-01-01T00:00:00Z"))
    assert "make a SAS" in old
