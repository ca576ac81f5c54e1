#!/bin/sh
# Packages in an environment of their own: they bring other versions of what our tests use.
set -eu
venv=$1
lock=$2
python=${PYTHON:-python3}
echo "Setting up $venv (once) ..." >&2
if command -v uv >/dev/null 2>&1; then
    [ -x "$venv/bin/python" ] || uv venv -q --python "$python" "$venv"
    VIRTUAL_ENV=$venv uv pip install -q --require-hashes -r "$lock"
else
    [ -x "$venv/bin/pip" ] || "$python" -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check --require-hashes -r "$lock"
fi
