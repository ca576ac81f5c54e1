#!/bin/sh
# Run pytest; what failed beside the others is run once more, each alone, and named in any case.
#
#     sh scripts/steady.sh NAME PYTEST [ARGUMENT ...]
#
# Thousands of tests with real sockets, processes and clocks run side by side here, on machines that do other work too.
# A defect fails alone as well. What passes alone depended on its company: it is no reason to stop everyone, and every
# reason to look at it, so its name is the last thing said. More than a few is never chance.
set -u
name=$1
pytest=$2
shift 2
most=${STEADY_MOST:-5}
cache=.pytest_cache/$name
rm -f "$cache/v/cache/lastfailed"

"$pytest" -o cache_dir="$cache" "$@"
code=$?
[ "$code" -eq 1 ] || exit "$code"
count=$(grep -c '::' "$cache/v/cache/lastfailed" 2>/dev/null || true)
[ "${count:-0}" -ge 1 ] && [ "$count" -le "$most" ] || exit 1
failed=$(sed -n 's/^ *"\(.*\)": true,\{0,1\}$/    \1/p' "$cache/v/cache/lastfailed")
echo "$name: $count failed; once more, alone:"
"$pytest" -o cache_dir="$cache" "$@" -n 0 --last-failed --last-failed-no-failures none || exit 1
printf '%s: UNSTEADY, passed only alone:\n%s\n' "$name" "$failed"
