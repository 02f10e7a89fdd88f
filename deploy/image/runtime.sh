#!/bin/sh
# The runtime stage of deploy/Dockerfile: certificates, the user that the program runs as, its folders.
#
#   deploy/image/runtime.sh [ROOT]
#
# ROOT is the image's root; a check gives a folder instead, and there nothing is installed.

set -eu

root=${1:-}
if [ -z "$root" ]; then
    apt-get update
    apt-get install --yes --no-install-recommends ca-certificates
    rm -rf /var/lib/apt/lists/*
fi
groupadd --prefix "${root:-/}" --gid 10001 tidegate
useradd --prefix "${root:-/}" --uid 10001 --gid 10001 --no-log-init --key UID_MAX=10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin tidegate
# Documents and results; answers that could not be written, of whichever user the container is started as.
install -d -o 10001 -g 10001 "$root/data"
install -d -m 1777 "$root/var/lib/tidegate"
