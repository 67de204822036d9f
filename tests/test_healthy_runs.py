# SPDX-License-Identifier: Apache-2.0
"""A hundred runs of healthy jobs raise no finding: minutes, so only with `scripts/test --full`."""

import itertools
import json
import os
from collections import Counter
from typing import Any

import pytest
from conftest import ROOT, Gradcheck

RUNS = 100


def healthy_arms() -> list[tuple[str, str]]:
    """(scenario, arm) of what must be consistent, says nothing of codes and needs only torch."""
    found = []
    for path in sorted((ROOT / "scenarios/python").glob("*.json")):
        scenario = json.loads(path.read_text())
        for arm in scenario["arms"]:
            python = {
                **scenario["program"].get("python", {}),
                **arm.get("change", {}).get("python", {}),
            }
            needs_more = python.get("environment") or set(python.get("requires", [])) - {"torch"}
            expect = arm["expect"]
            if expect.get("outcome") == "consistent" and "codes" not in expect and not needs_more:
                found.append((path.stem, arm["name"]))
    return found


def loud(arm: dict[str, Any]) -> list[str]:
    return [f["code"] for f in arm["findings"] if f["severity"] != "note"]


@pytest.mark.skipif(not os.environ.get("GRADCHECK_FULL"), reason="only with scripts/test --full")
def test_a_hundred_healthy_runs_raise_nothing(gradcheck: Gradcheck) -> None:
    arms = healthy_arms()
    assert len(arms) >= 20
    raised: Counter[str] = Counter()
    for scenario, name in itertools.islice(itertools.cycle(arms), RUNS):
        result = gradcheck("--scenario", scenario, "--arm", name, "--format", "json", timeout=300)
        arm = result.json()["scenarios"][0]["arms"][0]
        if arm["outcome"] != "consistent" or loud(arm):
            raised[f"{scenario}/{name}: {arm['outcome']} {loud(arm)} {arm['headline']}"] += 1
    assert not raised
