#!/bin/sh
# Checks what is in deploy/, what a release is made by, and the book, offline and without a cluster or a container engine: `make manifests`.
#
# The tools are those that `scripts/setup.sh --deploy` fetched, or the PATH's. Where one is missing, what it would have
# checked is SKIPPED, and said to be.

set -eu

cd "$(dirname "$0")/.."
TOOLS=$(pwd)/.tools/deploy
OVERLAYS="trial production versioned"

skipped() { printf 'SKIPPED %s\n' "$1" >&2; }

# What CI must not go without: needed WHAT
needed() {
    skipped "$1"
    if [ "${TIDEGATE_REQUIRE_DENY:-}" = 1 ]; then
        echo "TIDEGATE_REQUIRE_DENY=1, and it did not run: $1" >&2
        return 1
    fi
}

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

compose_and_image() {
    if hadolint=$(tool hadolint); then
        "$hadolint" deploy/Dockerfile
        echo "deploy/Dockerfile has no fault that hadolint knows"
    else
        skipped "hadolint: not installed (deploy/Dockerfile was not linted)"
    fi
    if ! have_packages; then
        skipped "docker-compose.yml and the image's context: the packages of deploy/requirements.txt are missing"
        return
    fi
    python -m check_jsonschema --builtin-schema vendor.compose-spec docker-compose.yml
    if ! git ls-files --error-unmatch Cargo.toml >/dev/null 2>&1; then
        skipped "the image's context and stages: no git repository (which files go into the image is not known)"
        return
    fi
    mkdir "$scratch/context"
    python scripts/check_containers.py "$scratch/context"
    builder_stage
    runtime_stage
    if docker compose version >/dev/null 2>&1; then
        TEMPORAL_DB_PASSWORD=checked REDIS_PASSWORD=checked GRAFANA_PASSWORD=checked \
            docker compose --profile '*' config --quiet
        echo "docker compose takes docker-compose.yml"
    else
        skipped "docker compose config: no Compose plugin (docker-compose.yml was held against its schema only)"
    fi
}

# In the image's context, with a cargo that compiles nothing: the script's own steps, and that the workspace is whole there.
# TIDEGATE_CHECK_IMAGE=build compiles it really (half an hour).
builder_stage() {
    (
        cd "$scratch/context"
        cargo metadata --locked --no-deps --format-version 1 >/dev/null
        if [ "${TIDEGATE_CHECK_IMAGE:-}" != build ]; then
            mkdir ../stand-in
            cat >../stand-in/cargo <<'EOF'
#!/bin/sh
[ "$*" = "build --locked --bin tidegate --profile dist" ] || { echo "cargo was asked to $*" >&2; exit 1; }
mkdir -p "${CARGO_TARGET_DIR:-target}/dist" && cp "$0" "${CARGO_TARGET_DIR:-target}/dist/tidegate"
EOF
            chmod +x ../stand-in/cargo
            PATH=$scratch/stand-in:$PATH
            CARGO_TARGET_DIR=$scratch/target
            export CARGO_TARGET_DIR
        fi
        sh deploy/image/build.sh "$scratch/out"
    )
    test -x "$scratch/out/tidegate"
    grep -q '^\[profile.dist\]' Cargo.toml
    echo "the image's builder stage runs to its end$([ "${TIDEGATE_CHECK_IMAGE:-}" = build ] || echo ", with a stand-in for the compiler")"
}

# Into a folder instead of an image; only root may give files to another user.
runtime_stage() {
    if [ "$(id -u)" != 0 ] || ! command -v useradd >/dev/null; then
        skipped "the image's runtime stage: needs root and useradd (it was not run)"
        return
    fi
    root=$scratch/root
    mkdir -p "$root/etc"
    touch "$root/etc/passwd" "$root/etc/group" "$root/etc/shadow" "$root/etc/gshadow"
    sh deploy/image/runtime.sh "$root"
    grep -q '^tidegate:x:10001:10001:' "$root/etc/passwd"
    [ "$(stat -c %u:%g:%a "$root/data")" = 10001:10001:755 ]
    [ "$(stat -c %a "$root/var/lib/tidegate")" = 1777 ]
    echo "the image's runtime stage runs to its end, but for the certificates"
}

alerts_and_dashboards() {
    if promtool=$(tool promtool); then
        "$promtool" check config deploy/prometheus/prometheus.yml
        "$promtool" test rules deploy/prometheus/alerts.test.yaml
        # Names of alerts are words.
        # shellcheck disable=SC2013
        for alert in $(sed -n 's/^ *- alert: //p' deploy/prometheus/alerts.yaml); do
            # Fires in a test, with labels that are told.
            if ! grep -A 5 "alertname: $alert\$" deploy/prometheus/alerts.test.yaml | grep -q exp_labels; then
                echo "deploy/prometheus/alerts.test.yaml does not see $alert fire" >&2
                return 1
            fi
        done
        echo "every alert of deploy/prometheus fires in a test"
        if command -v python3 >/dev/null; then
            python3 deploy/grafana/dashboards.py --rules >"$scratch/panels.yaml"
            "$promtool" check rules "$scratch/panels.yaml"
        fi
    else
        skipped "promtool: not installed (the alerts were not tested)"
    fi
    if command -v python3 >/dev/null; then
        python3 deploy/grafana/dashboards.py --check
        echo "the dashboards of deploy/grafana are as dashboards.py writes them"
    else
        skipped "deploy/grafana/dashboards.py --check: no python3 (the dashboards were not compared)"
    fi
}

release() {
    if deny=$(tool cargo-deny); then
        "$deny" --locked --log-level error check licenses bans sources
        # Advisories are a repository that is fetched: without it nothing can be said of them.
        if ! "$deny" --locked --log-level error check advisories >"$scratch/advisories" 2>&1; then
            if ! grep -q 'failed to fetch advisory database' "$scratch/advisories"; then
                cat "$scratch/advisories" >&2
                return 1
            fi
            skipped "cargo deny check advisories: the database cannot be fetched (known faults of dependencies were not looked for)"
        fi
    else
        needed "cargo deny: not installed (licences, sources and advisories were not checked)"
    fi
    if have_packages; then
        python -m check_jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
    else
        skipped "the schema of the release's workflow: the packages of deploy/requirements.txt are missing"
    fi
    if zizmor=$(tool zizmor); then
        "$zizmor" --offline --quiet .github/workflows
        echo "the release's workflow has no fault that zizmor knows"
    else
        skipped "zizmor: not installed (the release's workflow was not looked at)"
    fi
    packages
    release_files
}

# Each crate as a registry would get it, with its README; nothing is compiled.
packages() {
    CARGO_TARGET_DIR=$scratch/packages cargo package --quiet --workspace --exclude tidegate-testkit --locked --no-verify --allow-dirty
    for package in "$scratch"/packages/package/*.crate; do
        tar -tzf "$package" | grep -q '/README.md$' || { echo "$(basename "$package") has no README.md" >&2; return 1; }
    done
    echo "each crate makes a package, with its README"
}

# Of each target in the workflow, with tools that compile nothing: the script's own steps. A real wheel and archive are made
# by `make python`.
release_files() {
    place=$scratch/release
    mkdir -p "$place/.tools/release/bin" "$place/clients/python" "$place/deploy" "$place/docs"
    cp -R scripts Cargo.toml CHANGELOG.md LICENSE-* "$place"
    cp deploy/tidegate.toml "$place/deploy"
    cp docs/configuration.md "$place/docs"
    cat >"$place/.tools/release/bin/cargo" <<'EOF'
#!/bin/sh
for last; do :; done
made() { mkdir -p "${1%/*}" && cp "$0" "$1"; }
case ${0##*/}-$1 in
cargo-build | cargo-zigbuild) made "target/${last%%.*}/dist/tidegate" ;;
cargo-cyclonedx) case "$*" in *' --target all '*) made ./tidegate.cdx.json ;; esac ;;
maturin-build) made "$6/tidegate-$9.whl" ;;
esac
EOF
    chmod +x "$place/.tools/release/bin/cargo"
    ln -s cargo "$place/.tools/release/bin/rustup"
    ln -s cargo "$place/.tools/release/bin/maturin"
    targets=$(sed -n 's/.*{ target: \([^,]*\),.*/\1/p' .github/workflows/release.yml)
    # The words of $targets are meant to be split.
    # shellcheck disable=SC2086
    "$place/scripts/release.sh" $targets
    "$place/scripts/release.sh" --sums
    for target in $targets; do
        for file in "tidegate-$target.whl" "tidegate-.*-$target.tar.gz"; do
            grep -q "  $file\$" "$place/target/distrib/SHA256SUMS" || { echo "no $file in a release" >&2; return 1; }
        done
    done
    (cd "$place/target/distrib" && sha256sum --check --quiet SHA256SUMS)
    echo "a release's steps run to their end for each target, with a stand-in for the compiler"
}

# Built somewhere else; then each link in it must lead to a page or a section of it.
book() {
    if mdbook=$(tool mdbook) && have_packages; then
        "$mdbook" build docs --dest-dir "$scratch/book" >"$scratch/mdbook" 2>&1 || { cat "$scratch/mdbook" >&2; return 1; }
        if grep -Eq 'WARN|ERROR' "$scratch/mdbook"; then
            cat "$scratch/mdbook" >&2
            return 1
        fi
        python scripts/check_book.py "$scratch/book"
    else
        skipped "the book: no mdbook (docs/ was not built)"
    fi
}

scripts_of_shells() {
    if shellcheck=$(tool shellcheck); then
        "$shellcheck" scripts/*.sh deploy/image/*.sh .ci/run
        echo "the scripts have no fault that shellcheck knows"
    else
        skipped "shellcheck: not installed (the scripts were not linted)"
    fi
}

scripts_of_shells
overlays
compose_and_image
alerts_and_dashboards
release
book
