#!/usr/bin/env python3
"""Checks docker-compose.yml and what the image is built from, without an engine: check_containers.py CONTEXT

CONTEXT is an empty folder, which is filled with what .dockerignore leaves of the repository: there scripts/check-deploy.sh
runs what the Dockerfile's stages run. docker-compose.yml is held against what this project promises of it (its schema is
check-jsonschema's), and faults that are put into it must be found.
"""

import copy
import fnmatch
import pathlib
import re
import shutil
import subprocess
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent

# --- the image's context ------------------------------------------------------------------------------------------


def ignored(path, rules):
    """As .dockerignore says: the last rule that matches a file or one of its folders."""
    verdict = False
    parents = [path, *[str(parent) for parent in pathlib.PurePosixPath(path).parents][:-1]]
    for rule in rules:
        keep, pattern = rule.startswith("!"), rule.lstrip("!").lstrip("/")
        names = [pattern, pattern.removeprefix("**/")]
        if any(fnmatch.fnmatchcase(parent, name) for parent in parents for name in names if parent.count("/") >= name.count("/")):
            verdict = not keep
    return verdict


def fill(context):
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    kept = [file for file in files if file and (ROOT / file).is_file() and not ignored(file, rules)]
    for file in kept:
        target = context / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, target)
    return kept


def context_complaints(context, kept):
    for line in re.findall(r"^COPY (?!--from)(.+)$", (ROOT / "deploy/Dockerfile").read_text(), re.MULTILINE):
        for source in line.split()[:-1]:
            if not (context / source).exists():
                yield f"deploy/Dockerfile copies {source}, which .dockerignore leaves out"
    for file in kept:
        if re.search(r"(^|/)\.env$|\.(env|pem|key)$", file):
            yield f"{file} goes into the image's context"
        if file.endswith(".rs"):
            text = (context / file).read_text()
            for name in re.findall(r'include_(?:str|bytes)!\(\s*"([^"{]+)"\s*\)', text):
                if not (context / file).parent.joinpath(name).exists():
                    yield f"{file} includes {name}, which .dockerignore leaves out"


# --- Compose ------------------------------------------------------------------------------------------------------


def compose_complaints(compose):
    services = compose["services"]
    for name, service in services.items():
        image = re.sub(r"\$\{[^:}]+:-([^}]*)\}", r"\1", service["image"])
        if "build" not in service and not re.search(r":v?\d+\.\d+[\w.-]*$|@sha256:", image):
            yield f"{name}: the image {image} is not pinned to a version"
        if "healthcheck" not in service:
            yield f"{name}: nothing tells whether it is healthy"
        if "restart" not in service:
            yield f"{name}: nothing starts it again"
        if "mem_limit" not in service:
            yield f"{name}: may take all memory"
        if "max-size" not in service.get("logging", {}).get("options", {}):
            yield f"{name}: its log grows without end"
        for other, how in service.get("depends_on", {}).items():
            if how.get("condition") != "service_healthy":
                yield f"{name}: starts before {other} is healthy"
            if "healthcheck" not in services[other]:
                yield f"{name}: waits for {other}, which never says that it is healthy"
        for port in service.get("ports", []):
            if not str(port).startswith("127.0.0.1:"):
                yield f"{name}: publishes {port} to everybody"
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if re.fullmatch(r"[a-z]\w*", source) and source not in compose["volumes"]:
                yield f"{name}: there is no volume {source}"
            if source.startswith("./deploy/") and not (ROOT / source).exists():
                yield f"{name}: there is no {source}"
        if "build" in service:
            if service.get("read_only") is not True or service.get("cap_drop") != ["ALL"]:
                yield f"{name}: its root can be written to, or it keeps privileges"
        for variable, value in (service.get("environment") or {}).items():
            if re.search("KEY|PASSWORD|PWD|TOKEN|SECRET", variable) and "$" not in str(value):
                yield f"{name}: {variable} is a secret by value"
    grace = int(services["worker"].get("stop_grace_period", "10s").rstrip("s"))
    if grace <= 600:
        yield f"worker: is killed after {grace} s, with provider calls under way"


def drop(mapping, key):
    del mapping[key]


FAULTS = {
    "the latest image": lambda it: it["redis"].update(image="redis"),
    "an image of a major version": lambda it: it["redis"].update(image="redis:7"),
    "no limit of memory": lambda it: drop(it["worker"], "mem_limit"),
    "a log without an end": lambda it: drop(it["temporal"], "logging"),
    "no health check": lambda it: drop(it["temporal"], "healthcheck"),
    "a start out of order": lambda it: it["worker"]["depends_on"]["temporal"].update(condition="service_started"),
    "a port for everybody": lambda it: it["temporal"].update(ports=["7233:7233"]),
    "a volume that is not there": lambda it: it["worker"]["volumes"].append("other:/other"),
    "a file that is not there": lambda it: it["worker"]["volumes"].append("./deploy/other.toml:/x:ro"),
    "a password by value": lambda it: it["postgresql"]["environment"].update(POSTGRES_PASSWORD="secret"),
    "a short grace": lambda it: it["worker"].update(stop_grace_period="30s"),
    "a writable root": lambda it: it["worker"].update(read_only=False),
}


def main(context):
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    found = list(compose_complaints(compose))
    if not found:
        for fault, put in FAULTS.items():
            broken = copy.deepcopy(compose)
            put(broken["services"])
            if not list(compose_complaints(broken)):
                found.append(f"the check does not find {fault}")
    kept = fill(context)
    found += context_complaints(context, kept)
    for complaint in found:
        print(f"containers: {complaint}", file=sys.stderr)
    if not found:
        print(f"docker-compose.yml is as it should be; {len(FAULTS)} faults put into it are found; {len(kept)} files are the image's context")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
