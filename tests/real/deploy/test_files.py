"""Every file of deploy/ as its own program reads it. What cannot be run here: docker itself, and a cluster."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from isthmus.config import load_config
from isthmus.config.environment import known_variables
from isthmus.testing import ScriptedUpstream, chat
from one_provider import one_provider
from real.deploy.conftest import DEPLOY, PLACE, run

pytestmark = pytest.mark.real
PROBE = DEPLOY / "docker" / "probe.py"


def documents(path: Path) -> list[Any]:
    """A YAML file; its anchors resolved."""
    code = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))"
    if not (PLACE / "bin" / "python").exists():
        pytest.skip("`make test-deploy` fetches what reads YAML")
    ran = subprocess.run([PLACE / "bin" / "python", "-c", code, path], capture_output=True, text=True, check=True)
    return list(json.loads(ran.stdout))


def test_hadolint_finds_no_fault_with_the_dockerfile() -> None:
    run("hadolint", "--failure-threshold", "info", DEPLOY / "docker" / "Dockerfile")


def test_the_image_runs_as_nobody_in_particular_and_looks_after_itself() -> None:
    text = (DEPLOY / "docker" / "Dockerfile").read_text()
    last = text.rpartition("\nFROM ")[2]
    assert re.search(r"^USER 10001:10001$", last, re.MULTILINE)
    assert "HEALTHCHECK --interval=10s" in last
    assert "--require-hashes" in text
    for copied in re.findall(r"^COPY (?!--from)(?:--\S+ )?(.+) \S+$", text, re.MULTILINE):
        for each in copied.split():
            assert f"!{each}" in (DEPLOY.parent / ".dockerignore").read_text().split("\n"), each
            assert (DEPLOY.parent / each).exists()


def test_no_start_of_the_image_compiles_what_python_brings() -> None:
    """Its root file system may be read-only, and the images of Python have no bytecode."""
    last = (DEPLOY / "docker" / "Dockerfile").read_text().rpartition("\nFROM ")[2]
    version = re.match(r"python:(\d+\.\d+)-", last)
    assert version
    assert f"python -m compileall -q -x site-packages /usr/local/lib/python{version[1]}" in last


@pytest.mark.parametrize("file", ["isthmus.yaml", "secret.yaml"])
@pytest.mark.parametrize("version", ["1.31", "1.36"])
def test_kubernetes_takes_every_object(file: str, version: str) -> None:
    said = run("kubernetes-validate", "--strict", "-k", version, DEPLOY / "kubernetes" / file)
    assert said.count("passed") >= len(documents(DEPLOY / "kubernetes" / file)), said


def test_the_parts_in_kubernetes_fit_each_other() -> None:
    found = {each["kind"]: each for each in documents(DEPLOY / "kubernetes" / "isthmus.yaml")}
    (secret,) = documents(DEPLOY / "kubernetes" / "secret.yaml")
    pod = found["Deployment"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    labels = pod["metadata"]["labels"]
    for kind in ("Service", "PodDisruptionBudget", "NetworkPolicy"):
        spec = found[kind]["spec"]
        selector = spec.get("selector") or spec["podSelector"]
        assert selector.get("matchLabels", selector) == labels
    assert container["envFrom"] == [{"secretRef": {"name": secret["metadata"]["name"]}}]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    assert container["livenessProbe"]["httpGet"]["path"] == "/health"
    assert container["readinessProbe"]["exec"]["command"] == ["isthmus-probe", "ready"]
    assert found["PodDisruptionBudget"]["spec"]["minAvailable"] < found["Deployment"]["spec"]["replicas"]
    grace = load_text(found["ConfigMap"]["data"]["isthmus.toml"]).config.server.grace
    assert pod["spec"]["terminationGracePeriodSeconds"] > grace + 10
    _are_known({name for name in secret["stringData"] if name.startswith("ISTHMUS_")})


def test_compose_names_variables_that_there_are() -> None:
    (compose,) = documents(DEPLOY / "docker" / "compose.yaml")
    gateways = [each for name, each in compose["services"].items() if name.startswith("gateway")]
    assert len(gateways) == 2
    for gateway in gateways:
        assert gateway["read_only"] is True
        assert gateway["cap_drop"] == ["ALL"]
        _are_known({name for name in gateway["environment"] if name.startswith("ISTHMUS_")})
        assert (DEPLOY / "docker" / gateway["build"]["context"] / gateway["build"]["dockerfile"]).resolve().exists()
    config = load_text((DEPLOY / "docker" / "isthmus.toml").read_text()).config
    assert (config.server.host, config.server.port) == ("0.0.0.0", 8484)
    assert float(gateways[0]["stop_grace_period"].removesuffix("s")) > config.server.grace


def test_systemd_takes_the_unit_and_calls_it_safe(tmp_path: Path) -> None:
    unit = tmp_path / "isthmus.service"
    text = (DEPLOY / "systemd" / "isthmus.service").read_text()
    unit.write_text(text.replace("/opt/isthmus/bin/isthmus", sys.executable))
    assert "isthmus.service" not in run("systemd-analyze", "verify", unit)
    told = run("systemd-analyze", "security", "--offline=true", "--no-pager", unit)
    level = re.search(r"Overall exposure level for isthmus.service: ([\d.]+)", told)
    assert level is not None
    assert float(level[1]) < 2.0, told
    _are_known(set(re.findall(r"\b(ISTHMUS_\w+)=", text)) - {"ISTHMUS_CONFIG"})


def test_the_probe_says_how_a_gateway_is() -> None:
    with ScriptedUpstream.running(default=chat("ok")) as upstream:
        with one_provider(upstream) as (_, gateway):
            assert probe("health", PROBE_URL=gateway.url) == 0
            assert probe("ready", PROBE_URL=gateway.url) == 0
            assert probe("nowhere", PROBE_URL=gateway.url) == 1
        assert probe("health", PROBE_URL=gateway.url) == 1


def probe(what: str, **environ: str) -> int:
    command = [sys.executable, str(PROBE), what]
    return subprocess.run(command, env={**os.environ, **environ}, capture_output=True, check=False).returncode


def load_text(text: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "isthmus.toml"
        file.write_text(text)
        return load_config(file, environ={"HOME": folder, "ISTHMUS_SERVER_ADMIN_KEY": "x"})


def _are_known(names: set[str]) -> None:
    assert names - {"ISTHMUS_CONFIG"} <= set(known_variables([])), "no key of the configuration has these names"
