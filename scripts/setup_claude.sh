#!/bin/sh
# Install the pinned Claude Code below the virtual environment, with npm. The program itself needs no Node.js.
set -eu
venv=$1
pins=$2
command -v npm >/dev/null 2>&1 || {
    echo "npm is missing: the suite with Claude Code will be skipped" >&2
    exit 0
}
echo "Fetching Claude Code into $venv/claude (once, 350 MB) ..." >&2
mkdir -p "$venv/claude"
cp "$pins/package.json" "$pins/package-lock.json" "$venv/claude/"
(cd "$venv/claude" && npm ci --no-audit --no-fund --loglevel=error)
touch "$venv/.installed-claude"
