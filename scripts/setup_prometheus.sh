#!/bin/sh
# Fetch Debian's Prometheus, with promtool, below the virtual environment: unpacked, not installed, so nobody has to be root.
set -eu
venv=$1
place=$venv/prometheus
command -v apt-get >/dev/null 2>&1 && command -v dpkg >/dev/null 2>&1 || {
    echo "apt-get or dpkg is missing: the suite with Prometheus will be skipped" >&2
    exit 0
}
echo "Fetching Prometheus into $place (once, 20 MB) ..." >&2
mkdir -p "$place/lists/partial" "$place/cache/archives/partial"
cd "$place"
apt-get download -q prometheus >/dev/null 2>&1 || {
    # Without lists of packages, or with old ones: they are fetched here, and the system's are left alone.
    here="-o Dir::State::lists=$PWD/lists -o Dir::Cache=$PWD/cache"
    apt-get -q $here update >/dev/null && apt-get -q $here download prometheus >/dev/null
}
dpkg -x prometheus_*.deb .
rm -rf prometheus_*.deb lists cache
cd - >/dev/null
"$place/usr/bin/promtool" --version >/dev/null
touch "$venv/.installed-prometheus"
