#!/bin/sh
# Fetches Temporal's TypeScript SDK into .tools/typescript and compiles examples/temporal-typescript there: `make door`.

set -eu

cd "$(dirname "$0")/.."
FROM=examples/temporal-typescript
INTO=.tools/typescript

if ! command -v npm >/dev/null 2>&1; then
    echo "npm is missing: install Node.js 20 or newer (nodejs.org), and run this again" >&2
    exit 1
fi
mkdir -p "$INTO"
rm -rf "${INTO:?}/src" "${INTO:?}/lib"
cp -r "$FROM/src" "$FROM/tsconfig.json" "$FROM/package.json" "$INTO"
# What was fetched for the same list stays.
if ! cmp -s "$FROM/package-lock.json" "$INTO/package-lock.json" || [ ! -d "$INTO/node_modules" ]; then
    cp "$FROM/package-lock.json" "$INTO"
    npm ci --prefix "$INTO" --no-audit --no-fund >&2
fi
"$INTO/node_modules/.bin/tsc" --project "$INTO"
