#!/usr/bin/env python3
"""Ask the gateway beside us how it is: `isthmus-probe health`, `isthmus-probe ready`. Exit code 0: well.

`/ready` asks for a key where there are keys, and a probe of Kubernetes cannot read a secret: this one takes `PROBE_KEY` from
its environment. `PROBE_URL`: where the gateway listens.
"""

import os
import sys
import urllib.error
import urllib.request


def main(arguments: "list[str]") -> int:
    what = arguments[0] if arguments else "health"
    url = os.environ.get("PROBE_URL", "http://127.0.0.1:8484").rstrip("/")
    key = os.environ.get("PROBE_KEY", "")
    request = urllib.request.Request(f"{url}/{what}", headers={"Authorization": f"Bearer {key}"} if key else {})
    # No proxy: whatever the environment names is for the way to the providers.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=4) as answer:
            return 0 if answer.status == 200 else 1
    except urllib.error.HTTPError as error:
        print(f"{url}/{what}: {error.code} {error.read(300).decode(errors='replace')}", file=sys.stderr)
    except OSError as error:
        print(f"{url}/{what}: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
