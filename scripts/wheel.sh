#!/bin/sh
# Packs the Python package and a program into one wheel, which brings the library and the command `tidegate`.
#
#   scripts/wheel.sh PROGRAM FOLDER [MATURIN'S OPTION...]
#
# Without this script, `maturin develop` makes the library alone.

set -eu

cd "$(dirname "$0")/.."
program=$1
folder=$2
shift 2

# What lies here goes into an environment's folder of programs.
data=clients/python/tidegate._tidegate.data
trap 'rm -rf "$data"' EXIT
mkdir -p "$data/scripts"
cp "$program" "$data/scripts/tidegate"
maturin build --manifest-path clients/python/Cargo.toml --locked --out "$folder" "$@"
