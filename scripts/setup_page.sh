#!/bin/sh
# What the suite of the page needs: Debian's Chromium, and the pinned driver for it below the virtual environment.
set -eu
venv=$1
pins=$2
command -v npm >/dev/null 2>&1 || {
    echo "npm is missing: the suite of the page will be skipped" >&2
    exit 0
}
command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || {
    echo "Installing Debian's Chromium (once, 400 MB) ..." >&2
    { apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends \
        chromium fonts-dejavu-core; } >/dev/null || {
        echo "Chromium cannot be installed: the suite of the page will be skipped" >&2
        exit 0
    }
}
mkdir -p "$venv/page"
cp "$pins/package.json" "$pins/package-lock.json" "$venv/page/"
(cd "$venv/page" && npm ci --no-audit --no-fund --loglevel=error)
touch "$venv/.installed-page"
