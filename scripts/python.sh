#!/bin/sh
# Builds the Python package into .tools/python, packs its wheel, and runs its checks and tests: `make python`, after `scripts/setup.sh --python`.
# TIDEGATE_PYTHON=no leaves it out; what cannot be had is said.

set -eu

cd "$(dirname "$0")/.."
ROOT=$(pwd)
VENV=$ROOT/.tools/python
TARGET=${CARGO_TARGET_DIR:-$ROOT/target}

if [ "${TIDEGATE_PYTHON:-}" = no ] || [ ! -x "$VENV/bin/maturin" ]; then
    echo "SKIPPED the Python package: what it is built and tested with is not in .tools/python (nothing of clients/python was tried)" >&2
    exit 0
fi

TIDEGATE_PROGRAM=$TARGET/debug/tidegate
VIRTUAL_ENV=$VENV
PATH=$VENV/bin:$PATH
# A folder of its own: other features than those of the program, and yet the same names.
CARGO_TARGET_DIR=$TARGET/python
export TIDEGATE_PROGRAM VIRTUAL_ENV PATH CARGO_TARGET_DIR

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cd clients/python
cargo fmt -- --check
cargo clippy --locked -- -D warnings
maturin develop --locked --quiet
python -m mypy python/tidegate

# The wheel as it is released, unoptimised: the library and the program, in an environment that has nothing else.
"$ROOT/scripts/wheel.sh" "$TIDEGATE_PROGRAM" "$scratch" --quiet --compression-method stored
python -m venv --without-pip "$scratch/installed"
python -m pip --python "$scratch/installed/bin/python" install --quiet --no-index --no-deps "$scratch"/*.whl
"$scratch/installed/bin/python" -c 'import tidegate'
"$scratch/installed/bin/tidegate" --help >"$scratch/help"
"$scratch/installed/bin/tidegate" --version
# Nothing of the checkout is needed.
(cd "$scratch" && installed/bin/tidegate demo --documents 8)

# The archive as it is released.
"$ROOT/scripts/release.sh" --archive built-here "$TIDEGATE_PROGRAM" "$scratch"
tar -xzf "$scratch"/tidegate-*-built-here.tar.gz -C "$scratch"
(cd "$scratch"/tidegate-*-built-here && ./tidegate --version)

TIDEGATE_WHEEL=$(find "$scratch" -name "*.whl")
export TIDEGATE_WHEEL
python -m pytest -q -rs "$@"
