"""promtool over what stands in `deploy/`: the rules are rules, they fire when they should, every query can be read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from observe.metrics.test_deploy import panels
from real.prometheus.conftest import ROOT, Promtool

pytestmark = pytest.mark.real

DEPLOY = ROOT / "deploy" / "prometheus"


def test_the_rules_are_rules(promtool: Promtool) -> None:
    assert "19 rules found" in promtool("check", "rules", DEPLOY / "alerts.yml")


def test_the_example_is_a_configuration_with_these_rules(promtool: Promtool) -> None:
    said = promtool("check", "config", DEPLOY / "prometheus.yml")
    assert "1 rule files found" in said


def test_every_rule_fires_when_it_should_and_not_when_all_is_well(promtool: Promtool) -> None:
    tests = Path(__file__).parent / "alerts_test.yml"
    promtool("test", "rules", tests)
    names = re.findall(r"- alert: (\w+)", (DEPLOY / "alerts.yml").read_text(encoding="utf-8"))
    for name in names:  # both halves speak of each
        assert f"alertname: {name}," in tests.read_text(encoding="utf-8")
        assert f'alertname="{name}"' in tests.read_text(encoding="utf-8")


def test_every_query_of_the_dashboard_can_be_read(promtool: Promtool, tmp_path: Path) -> None:
    found = [each["expr"].replace("$__rate_interval", "5m") for panel in panels() for each in panel["targets"]]
    rules = [{"record": f"panel:{index}", "expr": expr} for index, expr in enumerate(found)]
    file = tmp_path / "panels.yml"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", file)
