#!/bin/sh
# Makes what a release holds, in target/distrib, with the tools that `scripts/setup.sh --release` fetched.
#
#   scripts/release.sh TARGET...   an archive and a wheel for each: x86_64-unknown-linux-gnu, aarch64-apple-darwin, …
#   scripts/release.sh --sums      the bill of materials, and the check sums of all that is there
#   scripts/release.sh --archive TARGET PROGRAM FOLDER   one archive of a program that is there
#
# The programs for Linux run with the glibc named here and newer ones, those for musl with any or none; those for macOS
# are made on macOS.

set -eu

GLIBC=2.28
CYCLONEDX=0.5.9

cd "$(dirname "$0")/.."
ROOT=$(pwd)
# Not target/dist, where cargo puts what the profile of that name builds.
OUT=target/distrib
PATH=$ROOT/.tools/release/bin:$ROOT/.tools/release/ziglang:$PATH
export PATH

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)

# The program: build TARGET
build() {
    rustup target add "$1"
    case $1 in
    *-linux-gnu) set -- zigbuild "$1.$GLIBC" ;;
    *-linux-musl) set -- zigbuild "$1" ;;
    *) set -- build "$1" ;;
    esac
    cargo "$1" --locked --package tidegate --bin tidegate --profile dist --target "$2"
}

# With the licences, an example of the configuration and what its keys mean: archive TARGET PROGRAM FOLDER
archive() {
    name=tidegate-$version-$1
    mkdir -p "$3/$name"
    cp "$2" LICENSE-APACHE LICENSE-MIT CHANGELOG.md deploy/tidegate.toml docs/configuration.md "$3/$name"
    tar -czf "$3/$name.tar.gz" -C "$3" "$name"
    rm -r "${3:?}/$name"
}

# wheel TARGET PROGRAM
wheel() {
    case $1 in
    *-linux-gnu) set -- "$@" --zig --compatibility "manylinux_$(echo $GLIBC | tr . _)" ;;
    *-linux-musl) set -- "$@" --zig --compatibility musllinux_1_2 ;;
    esac
    target=$1
    program=$2
    shift 2
    # Other features than those of the program, and yet the same names.
    CARGO_TARGET_DIR=$ROOT/target/python scripts/wheel.sh "$program" "$OUT" --release --target "$target" "$@"
}

sums() {
    cargo install --quiet --locked --root .tools/release "cargo-cyclonedx@$CYCLONEDX"
    # Not only what the machine of this script needs: macOS has crates of its own.
    cargo cyclonedx --format json --spec-version 1.5 --target all --override-filename tidegate.cdx
    mv tidegate.cdx.json "$OUT/tidegate-$version.cdx.json"
    # It writes one for each crate of the workspace.
    rm -f ./*/tidegate.cdx.json
    (cd "$OUT" && rm -f SHA256SUMS && sha256sum -- * >SHA256SUMS)
}

if [ "${1:-}" = --archive ]; then
    archive "$2" "$3" "$4"
    exit
fi
mkdir -p "$OUT"
if [ "${1:-}" = --sums ]; then
    sums
    exit
fi
for target in "$@"; do
    # jemalloc is built for one size of pages or smaller ones, and kernels of arm64 have up to 64 KB.
    case $target in aarch64-*-linux-*) export JEMALLOC_SYS_WITH_LG_PAGE=16 ;; *) unset JEMALLOC_SYS_WITH_LG_PAGE ;; esac
    build "$target"
    archive "$target" "target/$target/dist/tidegate" "$OUT"
    wheel "$target" "target/$target/dist/tidegate"
done
