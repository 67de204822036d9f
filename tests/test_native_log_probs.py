# SPDX-License-Identifier: Apache-2.0
"""Log-probs of native scenarios: readings, counterfactual arms, minimind's debug line."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Gradcheck

SCENARIOS = (
    "debug_log_ratio",
    "dpo_policy_is_reference",
    "logp_autocast",
    "logp_mask",
    "logp_packing",
    "logp_ref_outside_autocast",
    "logp_shift",
    "logp_temperature",
    "nograd_module_rollout",
    "ppo_second_epoch",
    "rollout_eval",
)
DEBUG_LINE = re.compile(
    r"(?:rank 0: )?\[DBG log_ratio\] step=(\d+) max\|lr\|=(\d\.\d{6}e[-+]\d\d) "
    r"mean\|lr\|=(\d\.\d{6}e[-+]\d\d) ratio_max=(\d\.\d{6}) ratio_min=(\d\.\d{6}) "
    r"dropout=(\d\.\d+) training=(True|False)"
)


def arms_of(gradcheck: Gradcheck, name: str | Path, *options: str) -> dict[str, dict[str, Any]]:
    result = gradcheck("--scenario", str(name), "--format", "json", *options)
    assert result.code == 0, result.out + result.err
    return {arm["name"]: arm for arm in result.json()["scenarios"][0]["arms"]}


def codes(arm: dict[str, Any]) -> set[str]:
    return {finding["code"] for finding in arm["findings"]}


def debug_lines(arm: dict[str, Any]) -> list[re.Match[str]]:
    found = [DEBUG_LINE.fullmatch(note) for note in arm["notes"] if "[DBG" in note]
    assert all(found), arm["notes"]
    return [line for line in found if line]


@pytest.mark.parametrize("name", SCENARIOS)
def test_one_rank_is_enough_for_log_probs(gradcheck: Gradcheck, name: str) -> None:
    arms = arms_of(gradcheck, name, "--ranks", "1")
    judged = [arm for arm in arms.values() if arm["verdict"] != "skip"]
    assert judged
    assert all(arm["logp"] for arm in judged)


def test_an_arm_with_one_thing_changed_says_how_far_the_difference_falls(
    gradcheck: Gradcheck,
) -> None:
    arms = arms_of(gradcheck, "logp_autocast")
    outside, inside = arms["outside_bf16"], arms["inside_bf16"]
    assert re.search(r"; max \|Δ\| 0\.0\d+ → 0 against outside_bf16$", inside["headline"])
    note = next(note for note in outside["notes"] if note.startswith("inside_bf16: "))
    assert note.endswith(": explains all of it")
    assert "modelled: CUDA's autocast policy" in " ".join(outside["notes"])


def test_sampler_old_and_new_are_read_against_each_other(gradcheck: Gradcheck) -> None:
    (judged,) = arms_of(gradcheck, "logp_ref_outside_autocast")["no_autocast"]["logp"]
    pairs = {pair["name"]: pair for pair in judged["reading"]["pairs"]}
    assert set(pairs) == {"old - rollout", "new - rollout", "new - ref"}
    assert pairs["old - rollout"] | {"name": ""} == pairs["new - rollout"] | {"name": ""}
    assert pairs["old - rollout"]["max_abs"] < 1e-5  # a prefix at a time: other shapes
    assert pairs["new - ref"]["max_abs"] == 0


def test_evaluation_mode_does_not_make_the_ratio_one(gradcheck: Gradcheck) -> None:
    arms = arms_of(gradcheck, "rollout_eval")
    size = {name: arm["logp"][0]["reading"]["statistics"]["mean_abs"] for name, arm in arms.items()}
    assert size["train"] == size["eval"] == 0
    assert 0 < size["eval_dropout"] < size["train_dropout"]


def test_the_debug_line_has_minimind_s_fields_and_formats(gradcheck: Gradcheck) -> None:
    arms = arms_of(gradcheck, "debug_log_ratio")
    (inside,) = debug_lines(arms["inside"])
    assert inside.groups() == (
        "0",
        "0.000000e+00",
        "0.000000e+00",
        "1.000000",
        "1.000000",
        "0.0",
        "True",
    )
    (outside,) = debug_lines(arms["outside"])
    statistics = arms["outside"]["logp"][0]["reading"]["statistics"]
    # of rank 0 alone
    assert 0 < float(outside[2]) <= statistics["max_abs"] * (1 + 1e-6)
    assert float(outside[4]) > 1 > float(outside[5])


def test_nobody_asked_for_the_debug_line(gradcheck: Gradcheck) -> None:
    for arm in arms_of(gradcheck, "logp_autocast").values():
        assert debug_lines(arm) == []


def test_a_second_epoch_is_no_test_and_no_finding(gradcheck: Gradcheck) -> None:
    arm = arms_of(gradcheck, "ppo_second_epoch")["in_place"]
    assert [judged["step"] for judged in arm["logp"]] == [0, 2]
    line = "log-probs 'policy': 4 of 8 with optimizer steps between old and new"
    assert line in arm["scope"]["not_checked"]
    assert codes(arm) == {"GC402"}  # a note about buffers


def test_a_rollout_by_the_module_without_gradients_is_no_bypass(gradcheck: Gradcheck) -> None:
    arm = arms_of(gradcheck, "nograd_module_rollout")["wrapped"]
    assert (codes(arm), arm["causes"]) == ({"GC402"}, [])


@pytest.mark.parametrize("name", ["rollout_eval", "logp_autocast"])
def test_roll_outs_are_repeatable_to_the_byte(gradcheck: Gradcheck, name: str) -> None:
    arguments = ["--scenario", name, "--format", "json"]
    first = gradcheck(*arguments, SOURCE_DATE_EPOCH="1700000000")
    assert first.out == gradcheck(*arguments, SOURCE_DATE_EPOCH="1700000000").out


@pytest.mark.parametrize("trainer", ["grpo", "agent", "ppo"])
@pytest.mark.parametrize("path", ["wrapped", "redirected", "hidden_states", "wrapped_twice"])
def test_every_trainer_and_path_makes_old_and_new_alike(
    gradcheck: Gradcheck, tmp_path: Path, trainer: str, path: str
) -> None:
    scenario = json.loads((ROOT / "scenarios" / "ppo_second_epoch.json").read_text("utf-8"))
    native = scenario["program"]["native"] | {"trainer": trainer, "path": path, "epochs": 1}
    if path == "wrapped_twice":
        native["wrapper"] = {"kind": "ddp", "options": {"broadcast_buffers": False}}
    if trainer != "ppo":
        del native["critic"]
    expect = {"outcome": "consistent", "logp": {"bitwise": True}}
    scenario |= {
        "program": {"native": native},
        "steps": 2,
        "micro_steps": 2,
        "arms": [{"name": "arm", "expect": expect}],
    }
    del scenario["$schema"]
    file = tmp_path / "ppo_second_epoch.json"
    file.write_text(json.dumps(scenario))
    arm = arms_of(gradcheck, file)["arm"]
    assert [judged["reading"]["counts"]["ranks"] for judged in arm["logp"]] == [2, 2]
