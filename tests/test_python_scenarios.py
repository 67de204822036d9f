# SPDX-License-Identifier: Apache-2.0
"""Every scenario of an unmodified Python job comes out as it says; a blind agent passes none."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Gradcheck

FOLDER = ROOT / "scenarios/python"
FULL = bool(os.environ.get("GRADCHECK_FULL"))


def tags_of(path: Path) -> list[str]:
    return json.loads(path.read_text())["tags"]


def wanted() -> list[str]:
    """`scripts/test --full` runs those that are tagged `full` too."""
    paths = sorted(FOLDER.glob("*.json"))
    return [path.stem for path in paths if FULL or "full" not in tags_of(path)]


@pytest.mark.parametrize("name", wanted())
def test_shipped_scenario_passes(gradcheck: Gradcheck, name: str) -> None:
    """Skipped only where its packages cannot be had."""
    result = gradcheck("--scenario", name, "--format", "json", timeout=600)
    report = result.json()
    arms = report["scenarios"][0]["arms"]
    if result.code == 4:
        pytest.skip(arms[0]["reason"])
    bad = {
        arm["name"]: (arm["headline"], arm["reason"]) for arm in arms if arm["verdict"] == "fail"
    }
    assert result.code == 0, bad or result.out
    assert all(arm["probe"] == "python" for arm in arms)


def test_most_scenarios_carry_a_negative_control() -> None:
    """An arm that must not be consistent; those without one are controls themselves."""
    without = []
    for path in sorted(FOLDER.glob("*.json")):
        outcomes = {arm["expect"].get("outcome") for arm in json.loads(path.read_text())["arms"]}
        if outcomes == {"consistent"}:
            without.append(path.stem)
    assert without == [
        "gan",
        "mean_every_micro",
        "one_process",
        "one_rank",
        "trl_grpo",
        "trl_kto_ddp",
        "trl_sft",
        "two_precisions",
        "zero_grad",
    ]


# --- an agent that misses something

# What is cut out of a copy of the agent → (file, text, replacement).
BLIND = {
    "no leaf hook reports": (
        "stages.py",
        "    def arrived(self, entry: Entry, gradient: Any) -> None:\n",
        "    def arrived(self, entry: Entry, gradient: Any) -> None:\n        return\n",
    ),
    "reduced is never closed": (
        "stages.py",
        "        self._close(model, micro, REDUCED, len(model.trainable))\n",
        "",
    ),
    "final is never recorded": (
        "stages.py",
        "    def final(self, model: Model, entries: list[Entry]) -> None:\n",
        "    def final(self, model: Model, entries: list[Entry]) -> None:\n        return\n",
    ),
    "one parameter in two is left out of reduced": (
        "stages.py",
        "        for entry in model.trainable:\n            grad = entry.param.grad\n",
        "        for entry in model.trainable[::2]:\n            grad = entry.param.grad\n",
    ),
}


@pytest.mark.parametrize("what", BLIND)
def test_a_blind_agent_passes_nothing(gradcheck: Gradcheck, tmp_path: Path, what: str) -> None:
    file, text, replacement = BLIND[what]
    package = tmp_path / "gradcheck"
    shutil.copytree(ROOT / "probes/python/gradcheck", package)
    source = package / "agent" / file
    assert text in source.read_text(), f"{file} has changed: mend this test"
    source.write_text(source.read_text().replace(text, replacement))
    result = gradcheck(
        "--scenario",
        "ddp",
        "--arm",
        "wrapper",
        "--format",
        "json",
        GRADCHECK_AGENT=str(package / "_site"),
    )
    arm: dict[str, Any] = result.json()["scenarios"][0]["arms"][0]
    assert result.code in (1, 3), arm["headline"]
    assert arm["outcome"] in ("inconclusive", "inconsistent")
