# SPDX-License-Identifier: Apache-2.0
"""Shipped scenarios with their mechanism switched off. None of them may come out as expected."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Gradcheck

Patch = dict[str, Any]


def scenario(name: str) -> dict[str, Any]:
    return json.loads((ROOT / "scenarios" / f"{name}.json").read_text())


def merge(target: dict[str, Any], patch: Patch) -> None:
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict) and isinstance(target.get(key), dict):
            merge(target[key], value)
        else:
            target[key] = copy.deepcopy(value)


def broken(folder: Path, name: str, native: Patch, arm: str, **top: Any) -> Path:
    """The scenario with one arm, and the one it is held against, and `native` forced on it,
    whatever the file says."""
    data = scenario(name)
    data.pop("$schema", None)
    data |= top
    kept = next(a for a in data["arms"] if a["name"] == arm)
    if "as_reference" not in kept["expect"]:
        kept.pop("reference", None)  # told beside it, demanded of nothing
    change = kept.setdefault("change", {}).setdefault("native", {})
    removed = {k: v for k, v in native.items() if v is None}
    merge(data["program"]["native"], removed)
    for key in removed:
        change.pop(key, None)
    merge(change, {k: v for k, v in native.items() if v is not None})
    data["arms"] = [a for a in data["arms"] if a is kept or a["name"] == kept.get("reference")]
    path = folder / f"{name}.json"
    path.write_text(json.dumps(data))
    return path


def fault(kind: str, **fields: Any) -> Patch:
    return {"fault": {"kind": kind} | fields}


def wrapper(**options: Any) -> Patch:
    return {"wrapper": {"kind": "ddp", "options": options}}


def sharded(kind: str, **options: Any) -> Patch:
    return {"wrapper": {"kind": kind, "options": options}}


def roll_out(**changes: Any) -> Patch:
    return {"roll_out": changes}


SUM_HOOK = wrapper(hook="sum")
EMBEDDING = "model.embed_tokens.weight"

TRAINERS = ("agent", "critic", "distillation", "dpo", "gkd", "grpo", "kto", "ppo", "sft")

# scenario, arm, what is switched off, exit code, outcome
SWITCHED_OFF = [
    ("kto_liger_ddp", "redirected", {"path": "unwrapped"}, 1, "inconsistent"),
    ("kto_liger_ddp", "redirected", fault("skip_reduction"), 1, "inconsistent"),
    ("kto_liger_ddp", "redirected", fault("corrupt_reduction", rank=1), 1, "inconsistent"),
    ("kto_liger_ddp", "redirected", SUM_HOOK, 1, "inconsistent"),
    ("kto_liger_ddp", "redirected", fault("skip_hook", tensor=EMBEDDING), 3, "inconclusive"),
    (
        "kto_liger_ddp",
        "redirected",
        fault("skip_hook", tensor=EMBEDDING, rank=1),
        3,
        "inconclusive",
    ),
    ("kto_liger_ddp", "redirected", fault("skip_mark", tensor="reduced"), 3, "inconclusive"),
    ("kto_liger_ddp", "redirected", fault("skip_mark", tensor="local"), 3, "inconclusive"),
    ("kto_liger_ddp", "redirected", fault("skip_mark", tensor="after"), 3, "inconclusive"),
    ("kto_liger_ddp", "redirected", {"data": "same"}, 3, "inconclusive"),
    ("kto_liger_ddp", "redirected", {"loss_scale": 0}, 3, "inconclusive"),
    ("kto_liger_ddp", "unwrapped", {"path": "redirected"}, 1, "consistent"),
    ("kto_noliger_ddp", "wrapped", fault("skip_reduction"), 1, "inconsistent"),
    ("kto_noliger_ddp", "wrapped", fault("skip_hook", tensor=EMBEDDING), 3, "inconclusive"),
    ("kto_liger_single", "direct", {"loss_scale": 0}, 3, "inconclusive"),
    ("kto_liger_single", "direct", fault("skip_hook", tensor=EMBEDDING), 3, "inconclusive"),
    ("kto_liger_single", "direct", fault("skip_mark", tensor="reduced"), 3, "inconclusive"),
    ("vacuous_same_data", "redirected", {"data": "per_rank"}, 1, "consistent"),
    ("vacuous_same_data", "unwrapped", {"data": "per_rank"}, 1, "inconsistent"),
    ("vacuous_zero_loss", "redirected", {"loss_scale": 1}, 1, "consistent"),
    ("vacuous_zero_loss", "unwrapped", {"loss_scale": 1}, 1, "inconsistent"),
    ("rank_raises", "redirected", {"fault": None}, 1, "consistent"),
    ("rank_dies", "redirected", {"fault": None}, 1, "consistent"),
    ("rank_hangs", "redirected", {"fault": None}, 1, "consistent"),
    ("rank_exits_early", "redirected", {"fault": None}, 1, "consistent"),
    ("dpo_liger_ddp", "redirected", {"path": "unwrapped"}, 1, "inconsistent"),
    ("dpo_liger_ddp", "unwrapped", {"loss": "chunked", "path": "redirected"}, 1, "consistent"),
    ("dpo_liger_ddp_chunked", "chunked_and_guard", {"path": "unwrapped"}, 1, "inconsistent"),
    ("dpo_liger_ddp_chunked", "chunked_alone", {"path": "redirected"}, 1, "consistent"),
    ("dpo_liger_ddp_guard_only", "above_on_inside", wrapper(optimize_ddp=False), 1, "consistent"),
    ("dpo_liger_ddp_guard_only", "above_on_inside", {"vocab_size": 16000}, 1, "consistent"),
    ("dpo_liger_ddp_guard_only", "above_off_inside", wrapper(optimize_ddp=True), 3, "raised"),
    ("dpo_liger_ddp_guard_only", "below_on_inside", {"vocab_size": 40000}, 3, "raised"),
    (
        "dpo_liger_ddp_guard_only",
        "above_on_outside",
        {"loss": "chunked", "path": "redirected"},
        1,
        "consistent",
    ),
    ("dpo_noliger_ddp", "wrapped", fault("skip_reduction"), 1, "inconsistent"),
    ("dpo_objectives", "mixture", fault("skip_reduction"), 1, "inconsistent"),
    ("dpo_objectives", "sigmoid", {"loss_scale": 0}, 3, "inconclusive"),
    ("kto_apo_zero", "redirected", {"path": "unwrapped"}, 1, "inconsistent"),
    ("kto_weights", "redirected", {"path": "unwrapped"}, 1, "inconsistent"),
    (
        "kto_weights",
        "redirected",
        {"desirable_weight": 0, "undesirable_weight": 0},
        3,
        "inconclusive",
    ),
    ("kto_one_sided_rank", "redirected", {"path": "unwrapped"}, 1, "inconsistent"),
    ("kto_liger_fused_ddp", "redirected", {"loss": "chunked"}, 1, "consistent"),
    ("kto_liger_fused_ddp", "chunked", {"loss": "fused"}, 3, "raised"),
    ("qwen2_sft_ddp", "wrapped", {"path": "unwrapped"}, 1, "inconsistent"),
    ("minimind_full_sft", "wrapped", {"path": "unwrapped"}, 1, "inconsistent"),
    ("minimind_lora", "wrapped", {"path": "unwrapped"}, 1, "inconsistent"),
    ("critic_tied", "wrapped", {"model": "minimind_critic_untied"}, 3, "raised"),
    ("critic_untied", "wrapped", {"model": "minimind_critic"}, 1, "consistent"),
    ("critic_untied_find_unused", "wrapped", wrapper(find_unused_parameters=False), 3, "raised"),
    (
        "moe_unused_expert",
        "touched",
        {"idle_expert": "always", "touch_idle_expert": False},
        3,
        "raised",
    ),
    ("moe_unused_expert", "untouched_everywhere", {"touch_idle_expert": True}, 1, "consistent"),
    ("moe_unused_expert_on_one_rank", "wrapped", {"touch_idle_expert": True}, 1, "consistent"),
    ("sft_ddp", "item_count", fault("skip_reduction"), 1, "inconsistent"),
    ("sft_masked_rank", "wrapped", fault("skip_reduction"), 1, "inconsistent"),
    ("sft_liger_ddp", "redirected", {"path": "unwrapped"}, 1, "inconsistent"),
    ("grpo_ddp", "wrapped", {"path": "unwrapped"}, 1, "inconsistent"),
    ("grpo_liger_ddp", "redirected", {"path": "unwrapped"}, 1, "inconsistent"),
    ("grpo_objectives", "cispo", fault("skip_reduction"), 1, "inconsistent"),
    ("minimind_grpo", "cispo", {"path": "unwrapped"}, 1, "inconsistent"),
    ("minimind_agent", "cispo", {"path": "unwrapped"}, 1, "inconsistent"),
    ("minimind_agent_empty_rows", "wrapped", {"path": "unwrapped"}, 1, "inconsistent"),
    (
        "minimind_ppo",
        "wrapped",
        {"path": "unwrapped", "critic": {"path": "unwrapped"}},
        1,
        "inconsistent",
    ),
    (
        "ppo_actor_fixed_critic_not",
        "critic_unwrapped",
        {"critic": {"path": "wrapped"}},
        1,
        "consistent",
    ),
    ("ppo_actor_fixed_critic_not", "critic_unwrapped", {"path": "unwrapped"}, 1, "inconsistent"),
    ("ppo_early_stop", "wrapped", fault("skip_reduction"), 1, "inconsistent"),
    ("minimind_distillation", "wrapped", {"path": "unwrapped"}, 1, "inconsistent"),
    ("gkd_liger_ddp", "hidden_states", {"path": "unwrapped"}, 1, "inconsistent"),
    ("gkd_liger_ddp", "find_unused", wrapper(find_unused_parameters=False), 1, "consistent"),
    ("zero_advantage", "everywhere", {"rewards": "distinct"}, 1, "consistent"),
    ("zero_advantage", "on_rank_0", {"rewards": "equal"}, 3, "inconclusive"),
    ("buffers_corrupt", "broadcast", wrapper(broadcast_buffers=False), 1, "inconsistent"),
    ("buffers_corrupt", "no_broadcast", {"fault": None}, 1, "consistent"),
    ("buffers_two_forwards", "broadcast", {"path": "wrapped"}, 1, "consistent"),
    ("buffers_two_forwards", "no_broadcast", wrapper(broadcast_buffers=True), 3, "raised"),
    (
        "buffers_ignore_name",
        "short_names",
        wrapper(ignored=["model.freqs_cos", "model.freqs_sin"]),
        1,
        "consistent",
    ),
    ("nograd_wrapped_then_bypass", "no_grad_first", {"path": "stray_arm"}, 1, "consistent"),
    ("stray_arm", "stray_arm", {"path": "no_grad_first"}, 1, "inconsistent"),
    ("stray_arm", "stray_arm", {"path": "wrapped"}, 1, "consistent"),
    ("comm_hooks", "allreduce", wrapper(hook="sum"), 1, "inconsistent"),
    ("comm_hooks", "sum", wrapper(hook="allreduce"), 1, "consistent"),
    ("comm_hooks", "power_sgd", wrapper(hook="power_sgd_unreduced"), 1, "inconsistent"),
    ("comm_hooks", "power_sgd_unreduced", wrapper(hook="power_sgd"), 1, "consistent"),
    ("micro_steps", "every_micro_step", wrapper(no_sync="all"), 1, "inconsistent"),
    ("micro_steps", "never_synchronised", wrapper(no_sync="all_but_last"), 1, "consistent"),
    ("micro_steps", "sum_every_micro_step", wrapper(hook="none"), 1, "consistent"),
    ("bypass_is_single_gpu", "unwrapped", {"path": "wrapped"}, 1, "consistent"),
    ("bypass_is_single_gpu", "unwrapped", {"clip_norm": 0.001}, 1, "inconsistent"),
    ("bypass_is_single_gpu", "unwrapped", {"batch_size": 6}, 3, "error"),
    ("bypass_is_single_gpu", "wrapped", {"path": "unwrapped"}, 1, "inconsistent"),
    ("accum_remainder", "last_micro_step", wrapper(no_sync="all_but_whole"), 1, "inconsistent"),
    ("accum_remainder", "leftover_forgotten", wrapper(no_sync="none"), 1, "consistent"),
    ("accum_remainder", "leftover_forgotten", {"remainder": 3}, 1, "consistent"),
    ("buffers_real_size", "broadcast", fault("skip_reduction"), 1, "inconsistent"),
    ("buffers_real_size", "broadcast", wrapper(broadcast_buffers=False), 1, "consistent"),
    ("logit_options", "chunked", {"path": "unwrapped"}, 1, "inconsistent"),
    ("clip_after_reduction", "wrapped", {"path": "unwrapped"}, 1, "inconsistent"),
    ("carried_over", "kept", {"fault": None}, 1, "consistent"),
    ("hidden_states_through_wrapper", "hidden_states", {"path": "unwrapped"}, 1, "inconsistent"),
    ("minimind_dpo", "wrapped", {"path": "unwrapped"}, 1, "inconsistent"),
    *((f"single_{t}", "after", {"loss_scale": 0}, 3, "inconclusive") for t in TRAINERS),
    ("minimind_pretrain", "wrapped", wrapper(no_sync="all"), 1, "inconsistent"),
    ("scaler_overflow", "wrapped", {"path": "unwrapped"}, 1, "inconsistent"),
    ("scaler_overflow", "unwrapped", {"path": "wrapped"}, 1, "consistent"),
    ("dpo_policy_is_reference", "redirected", {"reference": "noisy"}, 1, "consistent"),
    ("dpo_policy_is_reference", "redirected", {"path": "unwrapped"}, 1, "inconsistent"),
    ("logp_autocast", "outside_bf16", roll_out(log_softmax="inside"), 1, "consistent"),
    ("logp_autocast", "inside_bf16", roll_out(log_softmax="outside"), 1, "inconsistent"),
    ("logp_autocast", "inside_bf16", {"roll_out": None}, 1, "consistent"),
    ("logp_autocast", "inside_fp16", roll_out(log_softmax="outside"), 1, "inconsistent"),
    ("logp_ref_outside_autocast", "autocast", roll_out(autocast="none"), 1, "consistent"),
    ("logp_ref_outside_autocast", "no_autocast", {"reference": "noisy"}, 1, "consistent"),
    ("rollout_eval", "train_dropout", roll_out(dropout=0), 1, "consistent"),
    ("rollout_eval", "eval", roll_out(dropout=0.1), 1, "inconsistent"),
    ("debug_log_ratio", "inside", roll_out(log_softmax="outside"), 1, "inconsistent"),
    ("nograd_module_rollout", "wrapped", {"path": "unwrapped"}, 1, "inconsistent"),
    ("nograd_module_rollout", "wrapped", {"roll_out": None}, 1, "consistent"),
    ("logp_temperature", "forgotten", roll_out(mistake="none"), 1, "consistent"),
    ("logp_temperature", "matched", roll_out(mistake="temperature"), 1, "inconsistent"),
    ("logp_shift", "shifted", roll_out(mistake="none"), 1, "consistent"),
    ("logp_shift", "in_place", roll_out(mistake="shift"), 1, "inconsistent"),
    ("logp_shift", "in_place", {"data": "same"}, 3, "inconclusive"),
    ("logp_mask", "tools_counted", roll_out(mistake="none"), 1, "consistent"),
    ("logp_mask", "tools_masked", roll_out(mistake="mask"), 1, "inconsistent"),
    ("logp_packing", "packed", roll_out(mistake="none"), 1, "consistent"),
    ("logp_packing", "unpacked", roll_out(mistake="packing"), 1, "inconsistent"),
    ("ppo_second_epoch", "in_place", roll_out(mistake="shift"), 1, "inconsistent"),
    ("weights_after_k_steps", "unwrapped", {"path": "redirected"}, 1, "consistent"),
    ("kto_liger_zero2", "unwrapped", fault("skip_reduction"), 1, "inconsistent"),
    ("kto_liger_zero2", "redirected", fault("corrupt_reduction", rank=1), 1, "inconsistent"),
    ("kto_liger_zero2", "redirected", fault("corrupt_shard", rank=1), 1, "inconsistent"),
    ("kto_liger_zero2", "redirected", sharded("zero2", hook="sum"), 1, "inconsistent"),
    ("kto_liger_zero2", "redirected", fault("skip_hook", tensor=EMBEDDING), 3, "inconclusive"),
    ("kto_liger_zero2", "redirected", fault("skip_mark", tensor="reduced"), 3, "inconclusive"),
    ("kto_liger_zero2", "redirected", {"data": "same"}, 3, "inconclusive"),
    ("kto_liger_zero2", "redirected", {"loss_scale": 0}, 3, "inconclusive"),
    ("kto_liger_zero3", "redirected", fault("corrupt_shard", rank=0), 1, "inconsistent"),
    ("kto_liger_zero3", "redirected", {"path": "unwrapped"}, 3, "raised"),
    ("kto_liger_zero3", "unwrapped", {"path": "redirected"}, 1, "consistent"),
    ("kto_liger_fsdp1", "redirected", fault("skip_reduction"), 1, "inconsistent"),
    ("kto_liger_fsdp1", "unwrapped", {"path": "redirected"}, 1, "consistent"),
    ("kto_liger_fsdp2", "redirected", fault("corrupt_reduction", rank=0), 1, "inconsistent"),
    ("kto_liger_fsdp2", "identity_alone", {"guard": "final"}, 1, "consistent"),
    ("sharded_reduction_faults", "lost_rank", {"fault": None}, 1, "consistent"),
    ("sharded_reduction_faults", "right", fault("corrupt_shard", rank=1), 1, "inconsistent"),
    ("guard_single", "final", {"loss_scale": 0}, 3, "inconclusive"),
    ("guard_ddp", "final", {"guard": "old"}, 1, "inconsistent"),
    ("guard_ddp", "old", {"guard": "final"}, 1, "consistent"),
    ("guard_zero2", "final", fault("skip_reduction"), 1, "inconsistent"),
    ("guard_zero3", "final", {"guard": "never"}, 3, "raised"),
    ("guard_fsdp1", "final", {"guard": "never"}, 3, "raised"),
    ("guard_fsdp2", "final", {"guard": "identity_without_fsdp"}, 3, "raised"),
]


@pytest.mark.parametrize(("name", "arm", "native", "code", "outcome"), SWITCHED_OFF)
def test_a_scenario_without_its_mechanism_does_not_pass(
    gradcheck: Gradcheck,
    tmp_path: Path,
    name: str,
    arm: str,
    native: Patch,
    code: int,
    outcome: str,
) -> None:
    path = broken(tmp_path, name, native, arm)
    result = gradcheck("--scenario", path, "--format", "json")
    shown = next(a for a in result.json()["scenarios"][0]["arms"] if a["name"] == arm)
    assert (result.code, shown["outcome"]) == (code, outcome), shown["headline"]
    assert shown["verdict"] != "pass"


def arm_of(gradcheck: Gradcheck, path: Path, code: int) -> dict[str, Any]:
    result = gradcheck("--scenario", path, "--format", "json")
    assert result.code == code, result.out + result.err
    return result.json()["scenarios"][0]["arms"][0]


def codes(arm: dict[str, Any]) -> set[str]:
    return {f["code"] for f in arm["findings"]}


def test_every_shipped_scenario_was_switched_off_once() -> None:
    shipped = {path.stem for path in (ROOT / "scenarios").glob("*.json")}
    assert {name for name, *_ in SWITCHED_OFF} == shipped


def test_agreeing_on_a_wrong_sum_is_shown_in_headline_summary_and_exit(
    gradcheck: Gradcheck, tmp_path: Path
) -> None:
    path = broken(tmp_path, "kto_liger_ddp", SUM_HOOK, "redirected")
    result = gradcheck("--scenario", path, "--report", f"json={tmp_path / 'r.json'}")
    assert result.code == 1
    assert result.first.startswith("fail")
    assert "0/310 differed, 310 wrong" in result.out
    report = json.loads((tmp_path / "r.json").read_text())
    summary = report["summary"]
    assert (summary["differed"], summary["wrong"], summary["fail"]) == (0, 310, 1)
    arm = report["scenarios"][0]["arms"][0]
    assert "sum_not_mean" in {c["cause"] for c in arm["causes"]}


def test_a_bug_in_the_second_step_only_is_found(gradcheck: Gradcheck, tmp_path: Path) -> None:
    native = fault("skip_reduction", step=1)
    path = broken(tmp_path, "kto_liger_ddp", native, "redirected", steps=2)
    arm = arm_of(gradcheck, path, 1)
    assert [s["differed"] for s in arm["steps"]] == [0, 310]
    assert arm["totals"]["differed"] == 310


def test_the_last_micro_step_in_no_sync_is_found(gradcheck: Gradcheck, tmp_path: Path) -> None:
    native = {"wrapper": {"kind": "ddp", "options": {"no_sync": "all"}}}
    path = broken(tmp_path, "kto_liger_ddp", native, "redirected", micro_steps=2)
    arm = arm_of(gradcheck, path, 1)
    assert arm["totals"]["differed"] == 310
    assert "no_sync_window" in {c["cause"] for c in arm["causes"]}


@pytest.mark.parametrize("no_sync", ["none", "all_but_last"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_healthy_accumulation_is_no_alarm(
    gradcheck: Gradcheck, tmp_path: Path, no_sync: str, ranks: int
) -> None:
    native = {"wrapper": {"kind": "ddp", "options": {"no_sync": no_sync}}}
    top = {"micro_steps": 3, "steps": 2, "ranks": ranks}
    path = broken(tmp_path, "kto_liger_ddp", native, "redirected", **top)
    arm = arm_of(gradcheck, path, 0)
    assert (arm["totals"]["differed"], arm["totals"]["wrong"]) == (0, 0)


@pytest.mark.parametrize(
    "options",
    [
        {"gradient_as_bucket_view": True},
        {"static_graph": True},
        {"find_unused_parameters": True},
        {"broadcast_buffers": False},
    ],
)
def test_wrapper_options_are_no_alarm(
    gradcheck: Gradcheck, tmp_path: Path, options: dict[str, bool]
) -> None:
    native = {"wrapper": {"kind": "ddp", "options": options}}
    path = broken(tmp_path, "kto_liger_ddp", native, "redirected", steps=3)
    arm_of(gradcheck, path, 0)
    path = broken(tmp_path, "kto_liger_ddp", native | {"path": "unwrapped"}, "redirected", steps=3)
    arm = arm_of(gradcheck, path, 1)
    assert arm["totals"]["differed"] == 310


def test_a_lost_rank_is_named(gradcheck: Gradcheck, tmp_path: Path) -> None:
    native = fault("corrupt_reduction", rank=2)
    path = broken(tmp_path, "kto_liger_ddp", native, "redirected", ranks=4)
    arm = arm_of(gradcheck, path, 1)
    assert arm["totals"]["differed"] == 0
    assert "GC207" in codes(arm)
    assert "lost_rank" in {c["cause"] for c in arm["causes"]}
