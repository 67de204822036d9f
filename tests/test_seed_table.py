# SPDX-License-Identifier: Apache-2.0
"""Every row of the table of cases that the lab re-creates (its systems: TRL's preference trainers,
minimind's scripts) has its scenario, whose arms demand what the table says; or its test, where
there is nothing to run on ranks. That the arms come out so, tests/test_scenarios.py shows."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

Arms = dict[str, str]

LAB = "tests/probes/native/lab_test.py"

# row → scenario → arm → "differed/inventory", or the outcome where nothing is counted
ROWS: dict[str, dict[str, Arms]] = {
    "kto_liger_ddp": {"kto_liger_ddp": {"unwrapped": "310/310", "redirected": "0/310"}},
    "kto_noliger_ddp": {"kto_noliger_ddp": {"wrapped": "0/310"}},
    "kto_liger_fused_ddp": {
        "kto_liger_fused_ddp": {"unwrapped": "25/25", "redirected": "raised", "chunked": "0/25"}
    },
    "kto_liger_single": {"kto_liger_single": {"direct": "0/310"}},
    "kto_apo_zero": {"kto_apo_zero": {"unwrapped": "310/310", "redirected": "0/310"}},
    "kto_weights": {"kto_weights": {"unwrapped": "310/310", "redirected": "0/310"}},
    "kto_one_sided_rank": {"kto_one_sided_rank": {"unwrapped": "310/310", "redirected": "0/310"}},
    "dpo_liger_ddp_unwrapped": {"dpo_liger_ddp": {"unwrapped": "310/310"}},
    "dpo_liger_ddp_guard_only": {"dpo_liger_ddp_guard_only": {"above_on_inside": "raised"}},
    "dpo_liger_ddp_chunked_only": {"dpo_liger_ddp_chunked": {"chunked_alone": "310/310"}},
    "dpo_liger_ddp_chunked_guard": {"dpo_liger_ddp_chunked": {"chunked_and_guard": "0/310"}},
    "dpo_noliger_ddp": {"dpo_noliger_ddp": {"wrapped": "0/310"}},
    "minimind_dpo": {"minimind_dpo": {"wrapped": "0/90", "mixture": "0/170"}},
    "grpo_liger_ddp": {"grpo_liger_ddp": {"redirected": "0/310"}},
    "grpo_ddp": {"grpo_ddp": {"wrapped": "0/310"}},
    "sft_ddp": {"sft_ddp": {"mean": "0/310", "item_count": "0/310"}},
    "sft_liger_ddp": {"sft_liger_ddp": {"redirected": "0/310"}},
    "sft_chunked_nll": {"sft_liger_ddp": {"redirected": "0/310"}},
    "sft, an all-masked batch": {"sft_masked_rank": {"wrapped": "0/310", "redirected": "0/310"}},
    "gkd_liger_ddp": {
        "gkd_liger_ddp": {
            "unwrapped": "25/25",
            "hidden_states": "0/25",
            "find_unused": "raised",
            "find_unused_tied": "0/310",
        }
    },
    "minimind_pretrain": {"minimind_pretrain": {"wrapped": "0/90"}},
    "full_sft": {"minimind_full_sft": {"wrapped": "0/90", "wrapped_untied": "0/91"}},
    "lora": {"minimind_lora": {"unwrapped": "16/32", "wrapped": "0/32"}},
    "distillation": {"minimind_distillation": {"wrapped": "0/90"}},
    "minimind_grpo": {
        "minimind_grpo": {"unwrapped": "90/90", "cispo": "0/90", "grpo": "0/90", "mixture": "0/170"}
    },
    "minimind_agent": {
        "minimind_agent": {"unwrapped": "90/90", "cispo": "0/90", "grpo": "0/90"},
        "minimind_agent_empty_rows": {"wrapped": "0/90"},
    },
    "minimind_ppo": {
        "minimind_ppo": {"unwrapped": "182/182", "wrapped": "0/182", "mixture": "0/262"}
    },
    "ppo_actor_fixed_critic_not": {"ppo_actor_fixed_critic_not": {"critic_unwrapped": "92/182"}},
    "ppo_early_stop": {"ppo_early_stop": {"wrapped": "0/182"}},
    "moe_unused_expert": {
        "moe_unused_expert": {"touched": "0/170", "untouched_everywhere": "raised"},
        "moe_unused_expert_on_one_rank": {"wrapped": "error"},
    },
    "critic_tied": {"critic_tied": {"wrapped": "0/92"}},
    "critic_untied": {"critic_untied": {"wrapped": "92/93 raised"}},
    "critic_untied_find_unused": {"critic_untied_find_unused": {"wrapped": "0/93"}},
    "buffers_broadcast_on": {"buffers_real_size": {"broadcast": "0/90 GC402"}},
    "buffers_broadcast_off": {"buffers_real_size": {"no_broadcast": "0/90"}},
    "buffers_corrupt_off": {"buffers_corrupt": {"no_broadcast": "0/90 inconsistent GC401"}},
    "buffers_corrupt_on": {"buffers_corrupt": {"broadcast": "0/90"}},
    "buffers_ignore_name": {
        "buffers_ignore_name": {"short_names": "0/90 GC402", "full_names": "0/90"}
    },
    "buffers_two_forwards": {
        "buffers_two_forwards": {"broadcast": "raised", "no_broadcast": "0/90"}
    },
    "nograd_wrapped_then_bypass": {"nograd_wrapped_then_bypass": {"no_grad_first": "90/90"}},
    "stray_arm": {"stray_arm": {"stray_arm": "0/90 GC212"}},
    "accum_no_sync": {"micro_steps": {"last_micro_step": "0/90", "never_synchronised": "90/90"}},
    "accum_all_sync": {"micro_steps": {"every_micro_step": "0/90"}},
    "accum_remainder": {
        "accum_remainder": {
            "every_micro_step": "0/90",
            "last_micro_step": "0/90",
            "leftover_forgotten": "90/90",
        }
    },
    "scaler_fp16": {"scaler_overflow": {"unwrapped": "90/90 GC804", "wrapped": "0/90"}},
    "vacuous_same_data": {
        "vacuous_same_data": {"unwrapped": "inconclusive", "redirected": "inconclusive"}
    },
    "vacuous_zero_loss": {
        "vacuous_zero_loss": {"unwrapped": "inconclusive", "redirected": "inconclusive"}
    },
    "vacuous_zero_advantage": {
        "zero_advantage": {
            "everywhere": "inconclusive",
            "unwrapped_everywhere": "inconclusive",
            "on_rank_0": "0/90",
        }
    },
    "weights_after_k_steps": {
        "weights_after_k_steps": {"unwrapped": "310/310 GC302", "redirected": "0/310"}
    },
    "logp_autocast_outside": {
        "logp_autocast": {
            "outside_bf16": "0/182 inconsistent GC502",
            "outside_fp16": "0/182 inconsistent GC502",
        }
    },
    "logp_autocast_inside": {"logp_autocast": {"inside_bf16": "0/182", "inside_fp16": "0/182"}},
    "logp_ref_outside_autocast": {
        "logp_ref_outside_autocast": {"autocast": "0/90", "no_autocast": "0/90"}
    },
    "rollout_eval": {
        "rollout_eval": {
            "train": "0/25",
            "eval": "0/25",
            "train_dropout": "0/25 inconsistent",
            "eval_dropout": "0/25 inconsistent",
        }
    },
    "debug_log_ratio": {"debug_log_ratio": {"inside": "0/182"}},
    "nograd_module_rollout": {"nograd_module_rollout": {"unwrapped": "90/90", "wrapped": "0/90"}},
    "kto_liger_zero2": {"kto_liger_zero2": {"unwrapped": "0/310", "redirected": "0/310"}},
    "kto_liger_zero3": {
        "kto_liger_zero3": {
            "unwrapped": "raised",
            "redirected": "0/310",
            "with_zero3_term": "0/310",
            "without_zero3_term": "0/310",
        }
    },
    "kto_liger_fsdp1": {"kto_liger_fsdp1": {"unwrapped": "raised", "redirected": "0/310"}},
    "kto_liger_fsdp2": {
        "kto_liger_fsdp2": {
            "unwrapped": "raised",
            "identity_alone": "raised",
            "redirected": "0/310",
        }
    },
    "guard_truth_table": {
        f"guard_{wrapper}": {
            "old": "25/25" if wrapper == "ddp" else "0/25",
            "identity": "0/25",
            "final": "0/25",
        }
        for wrapper in ("single", "ddp", "zero2", "zero3", "fsdp1", "fsdp2")
    },
    # Beyond the table.
    "policy = reference at step 0": {"dpo_policy_is_reference": {"redirected": "0/25"}},
    "a second PPO epoch": {"ppo_second_epoch": {"in_place": "0/182"}},
    "bypass_is_single_gpu": {
        "bypass_is_single_gpu": {"one_process": "0/90", "unwrapped": "90/90", "wrapped": "0/90"}
    },
    "bypass with accumulation": {"micro_steps": {"unwrapped": "90/90"}},
    "SUM on every micro-step": {"micro_steps": {"sum_every_micro_step": "0/90 inconsistent"}},
    "gradient carried over": {"carried_over": {"kept": "0/90 GC210", "cleared": "0/90"}},
    "low-rank communication hook": {
        "comm_hooks": {"power_sgd": "0/90", "power_sgd_unreduced": "57/90"}
    },
    "wide logits": {"logit_options": {"chunked": "0/25", "dense": "0/25"}},
    **{
        f"single_process_unchanged, {trainer}": {f"single_{trainer}": {"before": n, "after": n}}
        for trainer, n in {
            "kto": "0/90",
            "dpo": "0/90",
            "grpo": "0/90",
            "ppo": "0/182",
            "critic": "0/92",
            "agent": "0/90",
            "sft": "0/90",
            "distillation": "0/90",
            "gkd": "0/90",
        }.items()
    },
}


# What no arm can show: row → file → tests in it
TESTS: dict[str, dict[str, list[str]]] = {
    "kto_kl_gather": {
        LAB: ["test_kl_is_gathered_whether_gradients_are_or_not"],
        "tests/probes/native/kto_test.cpp": ["KlIsTheMeanOfRankMeans"],
    },
    "kto_ref_logps, dpo_ref_logps": {
        LAB: ["test_reference_neither_arms_nor_passes_the_wrapper"],
        "tests/probes/native/fused_test.cpp": ["EqualsDenseAndChunkedInValueAndGradient"],
    },
    "chunked_logprob_parity": {
        "tests/probes/native/log_probs_test.cpp": [
            "EqualDenseInDoubleForAnyTile",
            "EqualDenseWithTemperatureSoftcapAndScale",
            "FindTargetsOnBothSidesOfATileBorder",
        ]
    },
    "nograd_module_checkpoint": {LAB: ["test_a_checkpoint_of_the_inner_module_has_its_own_names"]},
    "single_process_unchanged": {
        LAB: ["test_one_rank_has_the_same_gradients_before_and_after_the_repair"]
    },
    "MoE balancing term": {
        LAB: ["test_balancing_term_is_added_by_the_trainers_of_mixtures"],
        "tests/probes/native/experts_test.cpp": [
            "HaveABalanceWhoseGradientIsThatOfFiniteDifferences",
            "HaveABalanceThatReachesEveryRouter",
        ],
    },
    "25.2 MB a forward": {LAB: ["test_tables_of_real_size_cost_25_megabytes_a_forward"]},
}


def shipped(name: str) -> dict[str, Any]:
    return json.loads((ROOT / "scenarios" / f"{name}.json").read_text("utf-8"))


def demanded(expect: dict[str, Any], wanted: str) -> None:
    """`wanted`: counts, an outcome, codes, in this order, each where the table names it."""
    words = wanted.split()
    if "/" in words[0]:
        differed, of = (int(word) for word in words.pop(0).split("/"))
        assert (expect.get("differed"), expect.get("of")) == (differed, of)
        assumed = "inconsistent" if differed else "consistent"
        outcome = words.pop(0) if words and not words[0].startswith("GC") else assumed
    else:
        outcome = words.pop(0)
    assert expect["outcome"] == outcome
    assert set(words) <= set(expect.get("codes", []))


@pytest.mark.parametrize("row", ROWS)
def test_a_row_has_a_scenario_that_demands_it(row: str) -> None:
    for name, wanted in ROWS[row].items():
        arms = {arm["name"]: arm["expect"] for arm in shipped(name)["arms"]}
        for arm, what in wanted.items():
            assert arm in arms, f"{name} has no arm {arm}"
            demanded(arms[arm], what)


@pytest.mark.parametrize("row", TESTS)
def test_a_row_without_a_scenario_has_its_test(row: str) -> None:
    for file, names in TESTS[row].items():
        text = Path(ROOT / file).read_text("utf-8")
        for name in names:
            test = rf"def {name}\(|TEST(?:_F|_P)?\(\w+, {name}\)"
            assert re.search(test, text), f"{file} has no test {name}"


def test_a_demand_that_is_not_met_is_found() -> None:
    expect = {"outcome": "consistent", "differed": 0, "of": 90, "codes": ["GC402"]}
    demanded(expect, "0/90 GC402")
    for wrong in ("0/91", "90/90", "raised", "0/90 inconsistent", "0/90 GC401"):
        with pytest.raises(AssertionError):
            demanded(expect, wrong)
