#!/bin/sh
# Checks what is in deploy/, offline and without a cluster or a container engine: `make manifests`.
#
# The tools are those that `scripts/setup.sh --deploy` fetched, or the PATH's. Where one is missing, what it would have
# checked is SKIPPED, and said to be.

set -eu

cd "$(dirname "$0")/.."
TOOLS=$(pwd)/.tools/deploy
OVERLAYS="trial production versioned"

skipped() { printf 'SKIPPED %s\n' "$1" >&2; }

# The program of this name, fetched or on the PATH: tool NAME
tool() {
    if [ -x "$TOOLS/bin/$1" ]; then echo "$TOOLS/bin/$1"; else command -v "$1"; fi
}

# Python with the fetched packages: python ARGUMENT...
python() { PYTHONPATH=$TOOLS PYTHONDONTWRITEBYTECODE=1 "$(cat "$TOOLS/python")" "$@"; }

have_packages() { [ -r "$TOOLS/python" ] && python -c 'import jsonschema, kubernetes_validate, yaml, tomllib' 2>/dev/null; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

overlays() {
    if ! kubectl=$(tool kubectl); then
        skipped "the Kubernetes overlays: no kubectl (they were neither rendered nor checked)"
        return
    fi
    rendered=$scratch/rendered
    mkdir "$rendered"
    for overlay in $OVERLAYS; do
        "$kubectl" kustomize "deploy/kubernetes/overlays/$overlay" >"$rendered/$overlay.yaml"
        echo "deploy/kubernetes/overlays/$overlay is rendered"
    done
    if have_packages; then
        # The words of $OVERLAYS are meant to be split.
        # shellcheck disable=SC2046,SC2086
        python scripts/check_manifests.py $(printf "$rendered/%s.yaml " $OVERLAYS)
    else
        skipped "schemas and promises of the Kubernetes overlays: the packages of deploy/requirements.txt are missing, or Python is older than 3.11 (they were rendered only)"
    fi
}

overlays
