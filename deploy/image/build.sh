#!/bin/sh
# The builder stage of deploy/Dockerfile: the program at OUT/tidegate.
#
#   deploy/image/build.sh OUT
#
# CARGO_PROFILE   dist by default: small, and slow to build
# TIDEGATE_COMMIT what `tidegate --version` says, since an image's context has no repository

set -eu

out=${1:?the folder that the program goes to}
cd "$(dirname "$0")/../.."
profile=${CARGO_PROFILE:-dist}
cargo build --locked --bin tidegate --profile "$profile"
# Cargo's own name for what `dev` builds.
case $profile in dev) built=debug ;; *) built=$profile ;; esac
install -D -m 0755 "${CARGO_TARGET_DIR:-target}/$built/tidegate" "$out/tidegate"
