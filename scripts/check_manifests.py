#!/usr/bin/env python3
"""Checks rendered Kubernetes manifests, offline: check_manifests.py RENDERED...

Each object is held against its kind's schema (of two versions of Kubernetes; of Prometheus' operator, KEDA and the
Temporal Worker Controller), and all of them together against what this project promises of its deployment. Then faults
are put into them one at a time, and each must be found: a check that cannot fail is none.

Called by scripts/check-deploy.sh, which has the packages of deploy/requirements.txt on PYTHONPATH.
"""

import copy
import functools
import importlib
import json
import pathlib
import re
import sys
import tomllib

import jsonschema
import kubernetes_validate
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The oldest that is still maintained somewhere, and the newest that the schemas know.
VERSIONS = ["1.31", "1.37"]
TEMPORAL = json.loads((ROOT / "deploy/kubernetes/schemas/temporal.io.json").read_text())
MODELS = {
    "monitoring.coreos.com/v1": "cloudcoil.models.prometheus_operator.v1",
    "keda.sh/v1alpha1": "cloudcoil.models.keda.v1alpha1",
}
WORKLOADS = ("Deployment", "WorkerDeployment")
WORKER = {"app.kubernetes.io/name": "tidegate-worker"}


def at(thing):
    return f"{thing['kind']}/{thing.get('metadata', {}).get('name', '?')}"


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)(s|m|h)", text).groups()
    return int(number) * {"s": 1, "m": 60, "h": 3600}[unit]


# --- schemas ------------------------------------------------------------------------------------------------------


def against_schema(thing):
    """What the schema of its kind says against one object."""
    group = thing["apiVersion"]
    if group in MODELS:
        yield from against_model(thing)
    elif group == "temporal.io/v1alpha1":
        schema = TEMPORAL["$defs"].get(thing["kind"])
        if schema is None:
            yield f"{at(thing)}: no schema for this kind"
            return
        schema = {"$defs": TEMPORAL["$defs"], **schema}
        for error in jsonschema.Draft202012Validator(schema).iter_errors(thing["spec"]):
            yield f"{at(thing)}: spec.{'.'.join(map(str, error.path))}: {error.message}"
        if thing["kind"] == "WorkerDeployment":
            yield from against_kubernetes(as_deployment(thing))
        if thing["kind"] == "WorkerResourceTemplate":
            # As the controller makes it: with a name, and the Deployment of a version.
            inner = copy.deepcopy(thing["spec"]["template"])
            inner["metadata"] = {"name": thing["metadata"]["name"]}
            inner["spec"]["scaleTargetRef"] = {"name": "a-version"}
            yield from against_schema(inner)
    else:
        yield from against_kubernetes(thing)


def as_deployment(thing):
    spec = {"selector": {"matchLabels": WORKER}, "template": thing["spec"].get("template")}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": thing["metadata"], "spec": spec}


def against_kubernetes(thing):
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(thing, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            yield f"{at(thing)} (Kubernetes {version}): {'.'.join(map(str, error.path))}: {error.message}"
        except kubernetes_validate.SchemaNotFoundError as error:
            yield f"{at(thing)} (Kubernetes {version}): {error}"


def against_model(thing):
    """The models take unknown fields and drop them: what does not come back was unknown."""
    model = getattr(importlib.import_module(MODELS[thing["apiVersion"]]), thing["kind"], None)
    if model is None:
        yield f"{at(thing)}: no schema for this kind"
        return
    try:
        known = model.model_validate(thing).model_dump(by_alias=True, exclude_unset=True, mode="json")
    except ValueError as error:
        yield f"{at(thing)}: {error}"
        return
    yield from lost(thing["spec"], known["spec"], f"{at(thing)}: spec")


def lost(given, known, path):
    if isinstance(given, dict):
        for key, value in given.items():
            if not isinstance(known, dict) or key not in known:
                yield f"{path}.{key}: unknown field"
            else:
                yield from lost(value, known[key], f"{path}.{key}")
    elif isinstance(given, list):
        for number, value in enumerate(given):
            yield from lost(value, known[number], f"{path}.{number}")


# --- what this project promises -----------------------------------------------------------------------------------


def named(things, *kinds):
    return [thing for thing in things if thing["kind"] in kinds]


def against_promises(things):
    names = {(thing["kind"], thing["metadata"]["name"]) for thing in things}
    if len(names) != len(things):
        yield "two objects have one kind and name"
    workloads = named(things, *WORKLOADS)
    workers = [it for it in workloads if it["spec"]["template"]["metadata"]["labels"].items() >= WORKER.items()]
    if len(workers) != 1:
        yield f"{len(workers)} workloads are the worker"
    for thing in workloads:
        yield from pod_is_locked_down(thing, names)
    for worker in workers:
        yield from worker_is_as_documented(worker, things)
    for thing in things:
        if thing["kind"] != "Namespace" and thing["metadata"].get("namespace") != "tidegate":
            yield f"{at(thing)}: not in the namespace"
        # The trial's key is a word that the simulator takes.
        if thing["kind"] == "Secret" and ("Deployment", "tidegate-simulator") not in names:
            yield f"{at(thing)}: a secret's value in a manifest"
    labels = [it["spec"]["template"]["metadata"]["labels"] for it in workloads]
    for thing in named(things, "Service", "PodDisruptionBudget", "NetworkPolicy"):
        spec = thing["spec"]
        selector = spec.get("selector", {}) if thing["kind"] == "Service" else (spec.get("selector") or spec["podSelector"])
        selector = selector.get("matchLabels", selector)
        if not any(them.items() >= selector.items() for them in labels):
            yield f"{at(thing)}: selects no pod"
    for monitor in named(things, "ServiceMonitor"):
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        found = [it for it in named(things, "Service") if it["metadata"].get("labels", {}).items() >= wanted]
        ports = {port["name"] for service in found for port in service["spec"]["ports"]}
        for endpoint in monitor["spec"]["endpoints"]:
            if endpoint["port"] not in ports:
                yield f"{at(monitor)}: no service has a port {endpoint['port']}"


def pod_is_locked_down(thing, names):
    pod = thing["spec"]["template"]["spec"]
    context = pod.get("securityContext", {})
    if context.get("runAsNonRoot") is not True or not context.get("runAsUser"):
        yield f"{at(thing)}: may run as root"
    if context.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        yield f"{at(thing)}: no seccomp profile"
    if pod.get("automountServiceAccountToken") is not False:
        yield f"{at(thing)}: has a token of the cluster"
    volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
    for volume in volumes.values():
        reference = volume.get("configMap", {}).get("name")
        if reference and ("ConfigMap", reference) not in names:
            yield f"{at(thing)}: there is no ConfigMap {reference}"
        claim = volume.get("persistentVolumeClaim", {}).get("claimName")
        if claim and ("PersistentVolumeClaim", claim) not in names:
            yield f"{at(thing)}: there is no claim {claim}"
    for container in pod["containers"]:
        where = f"{at(thing)}, {container['name']}"
        security = container.get("securityContext", {})
        if security.get("readOnlyRootFilesystem") is not True:
            yield f"{where}: its root can be written to"
        if security.get("allowPrivilegeEscalation") is not False or security.get("capabilities", {}).get("drop") != ["ALL"]:
            yield f"{where}: keeps privileges"
        if not re.search(r":[^:/]*\d[^:/]*$|@sha256:", container["image"]):
            yield f"{where}: the image {container['image']} is not pinned to a version"
        if "memory" not in container.get("resources", {}).get("limits", {}) or "requests" not in container["resources"]:
            yield f"{where}: no limit of memory, or no requests"
        if "readinessProbe" not in container:
            yield f"{where}: nothing tells when it is ready"
        for variable in container.get("env", []):
            if re.search("KEY|SECRET|PASSWORD|TOKEN", variable["name"]) and "value" in variable:
                yield f"{where}: {variable['name']} is a secret by value"
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in volumes:
                yield f"{where}: there is no volume {mount['name']}"


def worker_is_as_documented(worker, things):
    pod = worker["spec"]["template"]["spec"]
    container = pod["containers"][0]
    where = at(worker)
    paths = {kind: container.get(kind, {}).get("httpGet", {}).get("path") for kind in ("livenessProbe", "readinessProbe")}
    if paths != {"livenessProbe": "/livez", "readinessProbe": "/readyz"}:
        yield f"{where}: alive and ready are not told apart: {paths}"
    reference = next((it["configMap"]["name"] for it in pod["volumes"] if "configMap" in it), None)
    texts = [it["data"]["tidegate.toml"] for it in named(things, "ConfigMap") if it["metadata"]["name"] == reference]
    if not texts:
        yield f"{where}: no configuration"
        return
    config = tomllib.loads(texts[0])
    # The simulator answers within seconds, so the trial's worker is not waited for as long.
    simulated = any("simulator" in it.get("base-url", "") for it in config["providers"].values())
    grace = 30 if simulated else seconds(config["worker"]["shutdown-grace"])
    if pod.get("terminationGracePeriodSeconds", 30) <= grace:
        yield f"{where}: is killed before its {grace} s of grace are over"
    writable = [it["mountPath"] for it in container["volumeMounts"] if not it.get("readOnly")]
    for folder in [config["worker"]["spool"], "/tmp"]:
        if not any(folder == path or folder.startswith(path + "/") for path in writable):
            yield f"{where}: {folder} is on the read-only root"
    files = [it["mountPath"] for it in container["volumeMounts"] if it["name"] == "keys"]
    for provider in config["providers"].values():
        if not any(provider["api-key-file"].startswith(path + "/") for path in files):
            yield f"{where}: {provider['api-key-file']} is not mounted"
    port = int(config["worker"]["metrics-listen"].rsplit(":", 1)[1])
    if port not in [it["containerPort"] for it in container["ports"]]:
        yield f"{where}: the metrics page's port {port} is not the container's"
    most = config["worker"].get("max-concurrent-documents", 200)
    scaled = named(things, "ScaledObject") + [it["spec"]["template"] for it in named(things, "WorkerResourceTemplate")]
    for thing in scaled:
        for trigger in thing["spec"]["triggers"]:
            if int(trigger["metadata"]["threshold"]) != most:
                yield f"{where}: {trigger['metadata']['threshold']} documents are a worker for KEDA, {most} for the worker"


@functools.cache
def schema_complaints(text):
    """The same object comes again with each fault that is put into another one."""
    return list(against_schema(json.loads(text)))


def complaints(things):
    found = [complaint for thing in things for complaint in schema_complaints(json.dumps(thing))]
    return found or list(against_promises(things))


# --- faults that must be found ------------------------------------------------------------------------------------


def pod_of(things, name="tidegate-worker"):
    return next(it for it in named(things, *WORKLOADS) if it["metadata"]["name"] == name)["spec"]["template"]["spec"]


def first(things, kind):
    return named(things, kind)[0]


def drop(mapping, key):
    del mapping[key]


FAULTS = {
    "a misspelt field": lambda it: pod_of(it).update(terminationGracePeriodSecond=630),
    "a port that is a word": lambda it: pod_of(it)["containers"][0]["ports"][0].update(containerPort="x"),
    "root": lambda it: drop(pod_of(it)["securityContext"], "runAsNonRoot"),
    "a writable root": lambda it: drop(pod_of(it)["containers"][0]["securityContext"], "readOnlyRootFilesystem"),
    "capabilities": lambda it: drop(pod_of(it)["containers"][0]["securityContext"], "capabilities"),
    "the latest image": lambda it: pod_of(it)["containers"][0].update(image="tidegate:latest"),
    "ready asks what alive asks": lambda it: pod_of(it)["containers"][0]["readinessProbe"]["httpGet"].update(path="/livez"),
    "too short a grace": lambda it: pod_of(it).update(terminationGracePeriodSeconds=30),
    "no place for the spool": lambda it: pod_of(it)["containers"][0]["volumeMounts"].pop(2),
    "a secret by value": lambda it: pod_of(it)["containers"][0]["env"].append({"name": "API_KEY", "value": "x"}),
    "a configuration that is not there": lambda it: drop(first(it, "ConfigMap")["metadata"], "name") or first(it, "ConfigMap")["metadata"].update(name="other"),
    "a service that selects nothing": lambda it: first(it, "Service")["spec"]["selector"].update(a="b"),
    "a policy that selects nothing": lambda it: first(it, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"].update(a="b"),
    "a budget with two rules": lambda it: first(it, "PodDisruptionBudget")["spec"].update(maxUnavailable=[1]),
}
FAULTS_OF = {
    "ServiceMonitor": {
        "an unknown field of a monitor": lambda it: first(it, "ServiceMonitor")["spec"].update(endpoint=[]),
        "a port that nobody has": lambda it: first(it, "ServiceMonitor")["spec"]["endpoints"][0].update(port="other"),
    },
    "ScaledObject": {
        "an unknown field of a scaler": lambda it: first(it, "ScaledObject")["spec"].update(maxReplicas=3),
        "another number of documents": lambda it: first(it, "ScaledObject")["spec"]["triggers"][0]["metadata"].update(threshold="7"),
    },
    "WorkerDeployment": {
        "an unknown strategy": lambda it: first(it, "WorkerDeployment")["spec"]["rollout"].update(strategy="Slow"),
        "a field of a Deployment": lambda it: first(it, "WorkerDeployment")["spec"].update(selector={}),
        "no Temporal": lambda it: drop(first(it, "WorkerDeployment")["spec"], "workerOptions"),
    },
    "WorkerResourceTemplate": {
        "a target of one's own": lambda it: first(it, "WorkerResourceTemplate")["spec"]["template"]["spec"].update(scaleTargetRef={"name": "x"}),
        "an unknown field of its scaler": lambda it: first(it, "WorkerResourceTemplate")["spec"]["template"]["spec"].update(maxReplicas=3),
    },
}


def main(files):
    bad = False
    for file in files:
        things = [thing for thing in yaml.safe_load_all(pathlib.Path(file).read_text()) if thing]
        name = pathlib.Path(file).stem
        found = complaints(things)
        for complaint in found:
            print(f"{name}: {complaint}", file=sys.stderr)
        bad = bad or bool(found)
        if found:
            continue
        faults = dict(FAULTS)
        for kind, more in FAULTS_OF.items():
            faults.update(more if named(things, kind) else {})
        for fault, put in faults.items():
            broken = copy.deepcopy(things)
            put(broken)
            if not complaints(broken):
                print(f"{name}: the check does not find {fault}", file=sys.stderr)
                bad = True
        print(f"{name}: {len(things)} objects are as they should be; {len(faults)} faults put into them are found")
    return 1 if bad or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
