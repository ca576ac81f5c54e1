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
echo "Setting up $venv (once) ..." >&2
if command -v uv >/dev/null 2>&1; then
    [ -x "$venv/bin/python" ] || uv venv -q --python "$python" "$venv"
    VIRTUAL_ENV=$venv uv pip install -q $more --require-hashes -r "$lock"
    VIRTUAL_ENV=$venv uv pip install -q --no-deps --no-build-isolation -e .
else
    [ -x "$venv/bin/pip" ] || "$python" -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check $more --require-hashes -r "$lock"
    "$venv/bin/pip" install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
fi
