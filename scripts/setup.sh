#!/bin/sh
# Build the virtual environment from the lock file: with uv if it is there, with venv and pip if not.
# A third argument goes to the installer: `--no-deps` where a lock names all that is wanted.
set -eu
venv=$1
lock=$2
more=${3:-}
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "Isthmus needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2
    exit 1
}
echo "Setting up $venv: some $(grep -c '==' "$lock") packages, once; with uv a minute, with pip a few." >&2

# A line that is written over while somebody waits at a terminal; nothing in a log.
began=$(date +%s)
if [ -t 2 ]; then
    (
        trap 'exit 0' TERM
        while sleep 1; do
            here=$(find "$venv" -maxdepth 5 -name '*.dist-info' 2>/dev/null | wc -l)
            printf '\r  %s packages are there, %s s' "$((here))" "$(($(date +%s) - began))" >&2
        done
    ) &
    watching=$!
    trap 'kill "$watching" 2>/dev/null || true; printf "\r%40s\r" "" >&2' EXIT
fi
if command -v uv >/dev/null 2>&1; then
    [ -x "$venv/bin/python" ] || uv venv -q --python "$python" "$venv"
    VIRTUAL_ENV=$venv uv pip install -q $more --require-hashes -r "$lock"
    VIRTUAL_ENV=$venv uv pip install -q --no-deps --no-build-isolation -e .
else
    [ -x "$venv/bin/pip" ] || "$python" -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check $more --require-hashes -r "$lock"
    "$venv/bin/pip" install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
fi
