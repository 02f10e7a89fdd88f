#!/bin/sh
# Packs the Python package and a program into one wheel, which brings the library and the command `tidegate`.
#
#   scripts/wheel.sh PROGRAM FOLDER [MATURIN'S OPTION...]
#
# Without this script, `maturin develop` makes the library alone. In a workflow of GitHub's, the links of the README, which PyPI shows alone,
# lead to the repository at the commit's tag or branch.

set -eu

cd "$(dirname "$0")/.."
program=$1
folder=$2
shift 2

# What lies here goes into an environment's folder of programs.
data=clients/python/tidegate._tidegate.data
readme=clients/python/README.md
trap 'rm -rf "$data"; [ ! -e "$readme.before" ] || mv "$readme.before" "$readme"' EXIT
if [ -n "${GITHUB_REPOSITORY:-}" ]; then
    sed -i.before "s#](../../#](https://github.com/$GITHUB_REPOSITORY/blob/$GITHUB_REF_NAME/#g" "$readme"
fi
mkdir -p "$data/scripts"
cp "$program" "$data/scripts/tidegate"
maturin build --manifest-path clients/python/Cargo.toml --locked --out "$folder" "$@"
