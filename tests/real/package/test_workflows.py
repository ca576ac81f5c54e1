"""The workflows keep what is promised of a release: who may do what, in which order, with which code of others."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from doc_pages import ROOT
from real.package.conftest import call, tool

pytestmark = pytest.mark.real

FOLDER = ROOT / ".github" / "workflows"
NAMES = ("ci", "docs", "release")


def workflow(name: str) -> dict[str, Any]:
    """As YAML has it; its key `on` is a word for true there."""
    code = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))"
    return dict(json.loads(call([tool("python"), "-c", code, FOLDER / f"{name}.yml"], ROOT)))


def steps(name: str) -> list[dict[str, Any]]:
    return [step for job in workflow(name)["jobs"].values() for step in job["steps"]]


def commands(job: dict[str, Any]) -> str:
    return "\n".join(step.get("run", step.get("uses", "")) for step in job["steps"])


def test_there_are_no_others() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(NAMES)


def test_zizmor_finds_no_fault_with_them() -> None:
    said = call([tool("zizmor"), "--offline", "--no-progress", "--persona", "pedantic", ROOT / ".github"], ROOT)
    assert {f"completed {name}" for name in ("ci.yml", "docs.yml", "release.yml")} <= {
        re.sub(r"completed .*/", "completed ", each) for each in re.findall(r"completed \S+", said)
    }
    assert "No findings to report" in said


@pytest.mark.parametrize("name", NAMES)
def test_code_of_others_is_pinned_by_its_digest_and_named(name: str) -> None:
    text = (FOLDER / f"{name}.yml").read_text()
    used = re.findall(r"uses: (.*)", text)
    assert used
    for each in used:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each), each


@pytest.mark.parametrize("name", NAMES)
def test_nobody_may_do_more_than_he_must(name: str) -> None:
    found = workflow(name)
    assert found["permissions"] == {}
    may = {job: made["permissions"] for job, made in found["jobs"].items()}
    more = {
        ("release", "publish"): {"id-token": "write", "attestations": "write"},
        ("release", "announce"): {"contents": "write"},
        ("docs", "build"): {"contents": "read", "pages": "read"},
        ("docs", "publish"): {"pages": "write", "id-token": "write"},
    }
    assert may == {job: more.get((name, job), {"contents": "read"}) for job in found["jobs"]}
    for step in steps(name):
        if "checkout@" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False
    assert "secrets." not in (FOLDER / f"{name}.yml").read_text()
    assert all(0 < job["timeout-minutes"] <= 90 for job in found["jobs"].values())


def test_a_release_begins_with_a_tag_and_nothing_else() -> None:
    assert workflow("release")["true"] == {"push": {"tags": ["v*"]}}


def test_a_release_is_built_once_tried_everywhere_and_published_last() -> None:
    jobs = workflow("release")["jobs"]
    assert {name: job.get("needs") for name, job in jobs.items()} == {
        "build": None,
        "try": "build",
        "publish": "try",
        "announce": "publish",
    }
    build = commands(jobs["build"])
    assert build.index("release.py check --tag") < build.index("make dist") < build.index("diff --recursive")
    assert 'release.py check --tag "$GITHUB_REF_NAME" --repository "$GITHUB_SERVER_URL/$GITHUB_REPOSITORY"' in build
    assert 'release.py check --tag "$GITHUB_REF_NAME" --dist packages' in build
    assert "make sbom" in build
    assert not any(
        "dist.py" in commands(job) or "make dist" in commands(job) for name, job in jobs.items() if name != "build"
    )


def test_what_was_built_is_tried_on_every_promised_python_and_system() -> None:
    trying = workflow("release")["jobs"]["try"]
    assert trying["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13", "3.14"]
    systems = {each.split("-")[0] for each in trying["strategy"]["matrix"]["system"]}
    assert systems == {"ubuntu", "macos", "windows"}
    said = commands(trying)
    assert "pip install --only-binary=:all: packages/*.whl" in said
    assert "scripts/try_installed.py" in said
    assert (ROOT / "scripts" / "try_installed.py").exists()


def test_what_is_published_is_attested_with_its_bill_of_materials() -> None:
    publish = workflow("release")["jobs"]["publish"]
    assert publish["environment"]["name"] == "pypi"
    given = {re.sub(r"@.*", "", step["uses"]): step.get("with", {}) for step in publish["steps"]}
    assert given["actions/attest-build-provenance"] == {"subject-path": "packages/*"}
    assert given["actions/attest-sbom"] == {"subject-path": "packages/*", "sbom-path": "sbom/isthmus.cdx.json"}
    assert given["pypa/gh-action-pypi-publish"] == {"packages-dir": "packages", "attestations": True}
    assert "checkout" not in commands(publish)
    assert list(given)[-1] == "pypa/gh-action-pypi-publish"
    announce = commands(workflow("release")["jobs"]["announce"])
    assert "made/sbom/isthmus.cdx.json" in announce
    assert "release.py notes" in announce


def test_ci_runs_what_the_makefile_has() -> None:
    run = "\n".join(commands(job) for job in workflow("ci")["jobs"].values())
    targets = set(re.findall(r"make (?:-\S+ )*([a-z-]+)", run))
    assert targets == {"test", "test-real", "check-package"}
    made = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    used = {target for name in NAMES for target in re.findall(r"make (?:-\S+ )*([a-z-]+)", str(steps(name)))}
    assert used <= made
    for path in re.findall(r"scripts/\w+\.\w+", "".join((FOLDER / f"{name}.yml").read_text() for name in NAMES)):
        assert Path(ROOT / path).exists(), path
