#!/bin/sh
# Find a Redis, or fetch Debian's below the virtual environment: unpacked, not installed, so nobody has to be root.
set -eu
venv=$1
place=$venv/redis
if command -v redis-server >/dev/null 2>&1; then
    touch "$venv/.installed-redis"
    exit 0
fi
command -v apt-get >/dev/null 2>&1 && command -v dpkg >/dev/null 2>&1 || {
    echo "redis-server, apt-get or dpkg is missing: the suite with Redis will be skipped" >&2
    exit 0
}
echo "Fetching Redis into $place (once, 3 MB) ..." >&2
mkdir -p "$place/lists/partial" "$place/cache/archives/partial"
cd "$place"
here="-o Dir::State::lists=$PWD/lists -o Dir::Cache=$PWD/cache"
apt-cache show redis-server >/dev/null 2>&1 && here= || apt-get -q $here update >/dev/null
# The server is in `redis-tools`; what it is linked with comes along.
needed=$(apt-cache $here depends redis-tools | sed -n 's/^ *Depends: \(lib[^< ]*\)$/\1/p' | grep -v '^libc6$')
apt-get -q $here download redis-tools $needed >/dev/null
for package in *.deb; do dpkg -x "$package" .; done
rm -rf ./*.deb lists cache
libraries=$(find "$PWD/usr/lib" "$PWD/lib" -name '*.so*' -exec dirname {} \; 2>/dev/null | sort -u | tr '\n' ':')
mkdir -p bin
ln -sf redis-check-rdb usr/bin/redis-server # one program, which goes by its name
cat > bin/redis-server <<END
#!/bin/sh
LD_LIBRARY_PATH=$libraries exec $PWD/usr/bin/redis-server "\$@"
END
chmod +x bin/redis-server
cd - >/dev/null
"$place/bin/redis-server" --version >/dev/null
touch "$venv/.installed-redis"
