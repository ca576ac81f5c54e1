#!/bin/sh
# List everything that an installation of Isthmus brings along, as CycloneDX: from an environment that holds what
# requirements-run.lock names and nothing else, by a tool that lives in another one. A second argument is a folder for
# both; what it holds already is used again.
set -eu
target=$1
python=${PYTHON:-python3}
here=${2:-}
if [ -z "$here" ]; then
    here=$(mktemp -d)
    trap 'rm -rf "$here"' EXIT
fi
mkdir -p "$(dirname "$target")"
if [ ! -d "$here/run" ]; then
    "$python" -m venv "$here/tool"
    "$here/tool/bin/pip" install -q --disable-pip-version-check --require-hashes -r requirements-sbom.lock
    "$python" -m venv --without-pip "$here/run"
    "$here/tool/bin/pip" --python "$here/run/bin/python" install -q --disable-pip-version-check --require-hashes \
        -r requirements-run.lock
fi
# The tool reads no code: it is told the version.
version=$("$python" scripts/release.py version)
sed "s/^dynamic = .*/version = \"$version\"/" pyproject.toml >"$here/pyproject.toml"
# Without times and random numbers: the same lock gives the same list.
"$here/tool/bin/cyclonedx-py" environment --pyproject "$here/pyproject.toml" --mc-type application --output-reproducible \
    --of JSON -o "$target" "$here/run/bin/python"
echo "written: $target" >&2
