"""Others, each pinned and in a place of its own below `.venv-peers`, which can be thrown away.

`python -m bench.gateways.peers` installs what is missing: from PyPI, npm and Debian, by name. What cannot be had is
told and left out of the run. Bifrost is not here: its npm package fetches a binary from a host of its own when it
starts.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench.gateways.workloads import WORKLOADS

PLACE: Final = Path(os.environ.get("BENCH_PEERS", Path(__file__).parents[2] / ".venv-peers"))
PYPI: Final = {"litellm": "litellm[proxy]==1.106.2", "llm-rosetta": "llm-rosetta==0.13.0"}
NPM: Final = {"@ahoo-wang/godex-linux-x64": "1.2.0", "@portkey-ai/gateway": "1.15.2"}
DEBIAN: Final = "nginx"
_MODELS: Final = (*{each.model for each in WORKLOADS}, *(f"text-{deltas}-50" for deltas in range(1, 401)))
"""For whoever wants them listed: of the workloads, and of streams that are held for a while."""

Start = tuple[list[str], dict[str, str]]


def main() -> None:
    PLACE.mkdir(exist_ok=True)
    missing = [*(_try(name, _pypi) for name in PYPI), *(_try(name, _npm) for name in NPM), _try(DEBIAN, _debian)]
    sys.exit(1 if all(missing) else 0)


def _try(name: str, install: Callable[[str], None]) -> bool:
    """Whether it could not be had."""
    try:
        install(name)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"{name} cannot be installed here and is left out: {error}", file=sys.stderr)
        return True
    return False


def _pypi(name: str) -> None:
    place = PLACE / name
    stamp = place / f".{PYPI[name]}"
    if stamp.exists():
        return
    print(f"{PYPI[name]} into {place} …", flush=True)
    uv = shutil.which("uv")
    if uv:
        subprocess.run([uv, "venv", "-q", "--allow-existing", "--python", sys.executable, str(place)], check=True)
        subprocess.run([uv, "pip", "install", "-q", "--python", str(place), PYPI[name]], check=True)
    else:
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        pip = [str(place / "bin" / "pip"), "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, PYPI[name]], check=True)
    stamp.touch()


def _npm(name: str) -> None:
    if _installed(name) == NPM[name]:
        return
    print(f"{name}@{NPM[name]} into {PLACE / 'node'} …", flush=True)
    place = PLACE / "node"
    place.mkdir(exist_ok=True)
    if not (place / "package.json").exists():
        (place / "package.json").write_text("{}")
    quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    subprocess.run(["npm", "install", *quiet, f"{name}@{NPM[name]}"], cwd=place, check=True)


def _debian(name: str) -> None:
    place = PLACE / name
    if (place / "usr" / "sbin" / name).exists():
        return
    print(f"Debian's {name} into {place} …", flush=True)
    (place / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (place / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    here = ["-o", f"Dir::State::lists={place}/lists", "-o", f"Dir::Cache={place}/cache"]
    if subprocess.run(["apt-get", "download", "-q", name], cwd=place, capture_output=True, check=False).returncode:
        subprocess.run(["apt-get", "-q", *here, "update"], cwd=place, check=True, capture_output=True)
        subprocess.run(["apt-get", "-q", *here, "download", name], cwd=place, check=True, capture_output=True)
    subprocess.run(["dpkg", "-x", next(str(each) for each in place.glob("*.deb")), "."], cwd=place, check=True)


# ── how each of them is started ────────────────────────────────────────────────────────────────────


def start_nginx(folder: Path, port: int, upstream: int) -> Start:
    (folder / "logs").mkdir(exist_ok=True)
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind}; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/logs/error.log;\n"
        "events { worker_connections 8000; }\n"
        f"http {{ access_log off; {temporary}client_max_body_size 64m; client_body_buffer_size 2m;\n"
        f"  upstream up {{ server 127.0.0.1:{upstream}; keepalive 4000; }}\n"
        f"  keepalive_requests 10000000;\n  server {{ listen 127.0.0.1:{port} backlog=4096;\n"
        "    location / { proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ''; "
        "proxy_buffering off; proxy_read_timeout 300s; } } }\n"
    )
    program = PLACE / "nginx" / "usr" / "sbin" / "nginx"
    return [str(program), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "log")], {}


def start_godex(*, keeps: bool) -> Callable[[Path, int, int], Start]:
    """As `godex init` sets it up: SQLite and traces; or with neither."""

    def start(folder: Path, port: int, upstream: int) -> Start:
        session = f"{{backend: sqlite, sqlite: {{path: {folder}/sessions.db}}}}" if keeps else "{backend: memory}"
        (folder / "godex.yaml").write_text(
            f"server: {{port: {port}, host: 127.0.0.1}}\ndefault_provider: up\n"
            "providers: {up: {spec: deepseek, credentials: {api_key: none}, "
            f'endpoint: {{base_url: "http://127.0.0.1:{upstream}/v1"}}}}}}\n'
            f"session: {session}\ntrace: {{enabled: {str(keeps).lower()}, path: {folder}/trace.db}}\n"
            "logging: {level: warn}\n"
        )
        program = PLACE / "node" / "node_modules" / "@ahoo-wang" / "godex-linux-x64" / "bin" / "godex"
        return [str(program), "serve", "--config", str(folder / "godex.yaml")], {}

    return start


def start_litellm(folder: Path, port: int, upstream: int) -> Start:
    (folder / "litellm.yaml").write_text(
        'model_list:\n  - model_name: "*"\n    litellm_params: {model: "lm_studio/*", '
        f'api_base: "http://127.0.0.1:{upstream}/v1", api_key: none}}\n'
        "general_settings: {dangerously_permit_weak_or_unset_master_key: true}\n"
    )
    program = str(PLACE / "litellm" / "bin" / "litellm")
    arguments = [program, "--config", str(folder / "litellm.yaml"), "--host", "127.0.0.1", "--port", str(port)]
    quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
    allowed = {"LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
    return [*arguments, "--num_workers", "1", "--telemetry", "False"], {**quiet, **allowed}


def start_rosetta(folder: Path, port: int, upstream: int) -> Start:
    provider = {"type": "openai_chat", "api_key": "none", "base_url": f"http://127.0.0.1:{upstream}/v1"}
    server = {"host": "127.0.0.1", "port": port, "open_on_no_keys": True}
    config = {"providers": {"up": provider}, "models": dict.fromkeys(_MODELS, "up"), "server": server}
    (folder / "rosetta.jsonc").write_text(json.dumps(config))
    program = str(PLACE / "llm-rosetta" / "bin" / "llm-rosetta-gateway")
    arguments = [program, "--config", str(folder / "rosetta.jsonc"), "--data-dir", str(folder), "--no-banner"]
    return [*arguments, "--log-level", "warning"], {}


def start_portkey(folder: Path, port: int, upstream: int) -> Start:
    program = PLACE / "node" / "node_modules" / "@portkey-ai" / "gateway" / "build" / "start-server.js"
    return ["node", str(program), "--headless", f"--port={port}"], {"TRUSTED_CUSTOM_HOSTS": "127.0.0.1"}


# ── their versions ─────────────────────────────────────────────────────────────────────────────────


def version_of(name: str) -> Callable[[], str]:
    return lambda: PYPI[name].rpartition("==")[2] if (PLACE / name).exists() else ""


def godex_version() -> str:
    return _installed("@ahoo-wang/godex-linux-x64")


def portkey_version() -> str:
    return _installed("@portkey-ai/gateway")


def nginx_version() -> str:
    program = PLACE / "nginx" / "usr" / "sbin" / "nginx"
    said = subprocess.run([str(program), "-v"], capture_output=True, text=True, check=False).stderr
    found = re.search(r"nginx/([\d.]+)", said)
    return found[1] if found else ""


def _installed(name: str) -> str:
    try:
        return str(json.loads((PLACE / "node" / "node_modules" / name / "package.json").read_text())["version"])
    except OSError:
        return ""


if __name__ == "__main__":
    main()
