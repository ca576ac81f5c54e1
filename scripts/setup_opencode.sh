#!/bin/sh
# Install the pinned opencode below the virtual environment, with npm. The program itself needs no Node.js.
set -eu
venv=$1
pins=$2
command -v npm >/dev/null 2>&1 || {
    echo "npm is missing: the guide for opencode will not be run" >&2
    exit 0
}
echo "Fetching opencode into $venv/opencode (once, 180 MB) ..." >&2
mkdir -p "$venv/opencode"
cp "$pins/package.json" "$pins/package-lock.json" "$venv/opencode/"
(cd "$venv/opencode" && npm ci --no-audit --no-fund --loglevel=error)
touch "$venv/.installed-opencode"
