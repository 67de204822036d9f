# SPDX-License-Identifier: Apache-2.0
"""What the lab's trainers, models and paths leave as evidence, rank by rank."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from native_front import RankEvidence, Record, Zygote, differing, program, run_arm

CRITIC = {"model": "minimind_critic", "path": "redirected"}
# trainer → what its program needs beside it
TRAINERS: dict[str, Record] = {
    "kto": {},
    "dpo": {},
    "sft": {},
    "grpo": {},
    "agent": {},
    "distillation": {},
    "gkd": {},
    "critic": {"model": "minimind_critic"},
    "ppo": {"critic": CRITIC},
}


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with Zygote() as running:
        yield running


def sft(**changes: object) -> Record:
    return program(model="minimind", trainer="sft", **changes)


def elsewhere(what: Record, path: str) -> Record:
    """The same program on another path, its critic too."""
    moved = what | {"path": path}
    if "critic" in what:
        moved["critic"] = what["critic"] | {"path": path}
    return moved


def gradients(evidence: RankEvidence) -> dict[tuple[str, str], str]:
    return {
        (record["model"], record["name"]): record["digest"]
        for record in evidence.of("tensor")
        if record["stage"] == "reduced"
    }


@pytest.mark.parametrize("trainer", TRAINERS)
def test_one_rank_has_the_same_gradients_before_and_after_the_repair(
    zygote: Zygote, trainer: str
) -> None:
    what = program(**({"model": "minimind", "trainer": trainer} | TRAINERS[trainer]))
    before, after = (run_arm(zygote, 1, elsewhere(what, p))[0] for p in ("unwrapped", "redirected"))
    assert len(gradients(before)) >= 90
    assert gradients(before) == gradients(after)


def test_bypass_is_training_on_one_rank(zygote: Zygote) -> None:
    """After three steps rank 0 has the weights of a run on its data alone."""
    both = run_arm(zygote, 2, sft(path="unwrapped"), steps=3)
    alone = run_arm(zygote, 1, sft(path="direct", wrapper="none"), steps=3)
    assert both[0].digests("after", 2) == alone[0].digests("after", 2)
    assert differing(both, "after", 2) == 90
    together = run_arm(zygote, 2, sft(path="redirected"), steps=3)
    assert together[0].digests("after", 2) != alone[0].digests("after", 2)


@pytest.mark.parametrize("trainer", ["dpo", "kto"])
def test_guard_only_raises_on_every_rank_before_any_backward(zygote: Zygote, trainer: str) -> None:
    what = program(
        model="qwen3_tiny_untied",
        trainer=trainer,
        loss="fused",
        vocab_size=40000,
        path="redirected",
    )
    for one in run_arm(zygote, 2, what):
        raised = one.events("exception")
        assert [event["error_type"] for event in raised] == ["c10::NotImplementedError"]
        assert raised[0]["text"] == "Cannot access storage of TensorWrapper"
        assert raised[0]["phase"] == "forward"
        assert one.events("backward") == []
        assert any("modelled" in event["text"] for event in one.events("note"))


def test_untied_critic_is_silent_in_step_0_and_raises_in_the_forward_of_step_1(
    zygote: Zygote,
) -> None:
    what = program(model="minimind_critic_untied", trainer="critic", loss="dense", path="wrapped")
    evidence = run_arm(zygote, 2, what, steps=2)
    assert differing(evidence, "reduced", 0) == 92
    for one in evidence:
        states = {t["name"]: t["state"] for t in one.of("tensor") if t["stage"] == "reduced"}
        assert [name for name, state in states.items() if state == "absent"] == ["lm_head.weight"]
        assert [event["step"] for event in one.events("exception")] == [1]
        assert one.events("reducer")[0]["needs_finalize"]


def test_actor_and_critic_are_recorded_apart(zygote: Zygote) -> None:
    what = program(model="minimind", trainer="ppo", critic=CRITIC)
    one = run_arm(zygote, 2, what)[0]
    reduced = [t["model"] for t in one.of("tensor") if t["stage"] == "reduced"]
    assert (reduced.count("policy"), reduced.count("critic")) == (90, 92)
    assert [event["model"] for event in one.events("backward")] == ["policy", "critic"]


@pytest.mark.parametrize(
    ("ignored", "tables"), [(["freqs_cos", "freqs_sin"], 2), (["model.freqs_cos"], 1)]
)
def test_only_full_names_keep_a_buffer_from_being_broadcast(
    zygote: Zygote, ignored: list[str], tables: int
) -> None:
    one = run_arm(zygote, 2, sft(options={"ignored": ignored}))[0]
    sizes = {event["bytes"] for event in one.events("buffers_broadcast")}
    assert sizes == {tables * 64 * 4 * 4}  # rows, head_dim, float32


def test_hidden_states_path_arms_and_leaves_the_head_outside(zygote: Zygote) -> None:
    evidence = run_arm(zygote, 2, sft(path="hidden_states"))
    assert differing(evidence, "reduced") == 0
    assert [event["armed"] for event in evidence[0].events("backward")] == [True]


@pytest.mark.parametrize(("path", "armed"), [("no_grad_first", False), ("stray_arm", True)])
def test_only_a_forward_with_gradients_arms(zygote: Zygote, path: str, armed: bool) -> None:
    evidence = run_arm(zygote, 2, sft(path=path))
    assert [event["armed"] for event in evidence[0].events("backward")] == [armed]
    assert (differing(evidence, "reduced") == 0) == armed


def test_item_count_is_the_mean_over_the_tokens_of_all_ranks(zygote: Zygote) -> None:
    """Gradients with the count differ from those of means, and agree over ranks all the same."""
    means, counted = (run_arm(zygote, 2, sft(count_items=c)) for c in (False, True))
    assert differing(counted, "reduced") == 0
    assert counted[0].digests("reduced") != means[0].digests("reduced")


def router_gradients(evidence: RankEvidence) -> dict[str, str]:
    return {
        name: digest
        for name, digest in evidence.digests("local").items()
        if name.endswith("mlp.gate.weight")
    }


@pytest.mark.parametrize("trainer", TRAINERS)
def test_balancing_term_is_added_by_the_trainers_of_mixtures(zygote: Zygote, trainer: str) -> None:
    """minimind's own, but for distillation; those of TRL have no such term."""
    if trainer == "critic":
        pytest.skip("its model is no mixture")
    what = program(
        **({"model": "minimind_moe", "trainer": trainer, "batch_size": 32} | TRAINERS[trainer])
    )
    without, with_it = (
        router_gradients(run_arm(zygote, 2, what | {"balance_share": share})[0])
        for share in (0, 0.01)
    )
    changed = {name for name in without if without[name] != with_it[name]}
    assert len(without) == 8
    assert len(changed) == (8 if trainer in ("dpo", "sft", "grpo", "agent", "ppo") else 0)


def operations(evidence: RankEvidence) -> list[str]:
    return [event["op"] for event in evidence.events("collective")]


def test_kl_is_gathered_whether_gradients_are_or_not(zygote: Zygote) -> None:
    """Equal KL terms are no evidence of reduced gradients."""
    without = operations(run_arm(zygote, 2, sft())[0]).count("all_gather")
    for path, reduced in (("unwrapped", 0), ("redirected", 1)):
        for one in run_arm(zygote, 2, program(model="minimind", path=path)):
            assert operations(one).count("all_reduce") == reduced
            assert operations(one).count("all_gather") == without + 1


@pytest.mark.parametrize("trainer", ["kto", "dpo", "grpo"])
def test_reference_neither_arms_nor_passes_the_wrapper(zygote: Zygote, trainer: str) -> None:
    what = program(model="minimind", trainer=trainer)
    for one in run_arm(zygote, 2, what):
        assert [event["grad_mode"] for event in one.events("wrapper_forward")] == [True]
        assert len(one.events("buffers_broadcast")) == 1


@pytest.mark.parametrize(("hook", "reductions"), [("power_sgd", 3), ("power_sgd_unreduced", 1)])
def test_low_rank_factors_are_reduced_one_after_the_other(
    zygote: Zygote, hook: str, reductions: int
) -> None:
    """Vectors, left factors, right factors; and the wrapper says that the result is no mean."""
    for one in run_arm(zygote, 2, sft(options={"hook": hook})):
        assert operations(one).count("all_reduce") == reductions
        assert [(w["hook"], w["reduce"]) for w in one.of("wrapper")] == [(hook, "lossy")]


def test_a_checkpoint_of_the_inner_module_has_its_own_names(zygote: Zygote) -> None:
    """What is saved past the wrapper, no "module." before it, fits a model without a wrapper."""
    wrapped = run_arm(zygote, 2, sft())[0]
    alone = run_arm(zygote, 1, sft(path="direct", wrapper="none"))[0]
    assert list(wrapped.digests("after")) == list(alone.digests("after"))
    assert not any("module." in name for name in wrapped.digests("after"))


def test_tables_of_real_size_cost_25_megabytes_a_forward(zygote: Zygote) -> None:
    """As computed from their shape, and as measured at the process group."""
    what = program(model="minimind_real_tables", trainer="sft")
    computed = 2 * 32768 * 96 * 4
    for one in run_arm(zygote, 2, what):
        assert [event["bytes"] for event in one.events("buffers_broadcast")] == [computed]
        broadcasts = [e for e in one.events("collective") if e["op"] == "broadcast"]
        assert computed in [event["bytes"] for event in broadcasts]
    what = program(
        model="minimind_real_tables", trainer="sft", options={"broadcast_buffers": False}
    )
    for one in run_arm(zygote, 2, what):
        assert one.events("buffers_broadcast") == []


SHARDING = ("zero2", "zero3", "fsdp1", "fsdp2")


def shards_of(evidence: list[RankEvidence], stage: str) -> dict[str, list[Record]]:
    """The records of each tensor, by rank."""
    rows: dict[str, list[Record]] = {}
    for one in evidence:
        for record in one.of("tensor"):
            if record["stage"] == stage and record["kind"] != "buffer":
                rows.setdefault(record["name"], []).append(record)
    return rows


def covers(records: list[Record]) -> bool:
    """The shards hold each element of the whole once."""
    whole = math.prod(records[0]["global_shape"])
    owned = sorted((r["offset"], r["n"]) for r in records if r["n"] > 0)
    ends = [0] + [offset + n for offset, n in owned]
    return ends[:-1] == [offset for offset, _ in owned] and ends[-1] == whole


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("kind", SHARDING)
def test_locals_are_whole_and_reduced_gradients_are_shards_that_cover_them(
    zygote: Zygote, kind: str, ranks: int
) -> None:
    what = program(model="qwen3_tiny_untied", wrapper=kind)
    evidence = run_arm(zygote, ranks, what, steps=2)
    for records in shards_of(evidence, "local").values():
        assert {r["layout"] for r in records} == {"dense"}
        assert all(r["state"] == "finite" for r in records)
    reduced = shards_of(evidence, "reduced")
    assert len(reduced) == 25
    for name, records in reduced.items():
        by_step = [[r for r in records if r["step"] == step] for step in (0, 1)]
        assert all(covers(at_step) for at_step in by_step), name
    layouts = {r["layout"] for rs in shards_of(evidence, "after").values() for r in rs}
    assert layouts == ({"dense"} if kind == "zero2" else {"shard"})


def test_zero2_ends_with_the_weights_of_ddp(zygote: Zygote) -> None:
    """Of two ranks the mean is exact either way, and so is each step."""
    sharded = run_arm(zygote, 2, program(wrapper="zero2"), steps=2)
    replicated = run_arm(zygote, 2, program(), steps=2)
    assert sharded[0].digests("after", 1) == replicated[0].digests("after", 1)
    assert differing(sharded, "after", 1) == 0


@pytest.mark.parametrize("kind", SHARDING)
def test_reports_say_modelled(zygote: Zygote, kind: str) -> None:
    for one in run_arm(zygote, 2, program(model="qwen3_tiny_untied", wrapper=kind)):
        assert any(event["text"].startswith("modelled: ") for event in one.events("note"))


@pytest.mark.parametrize("kind", ["zero3", "fsdp1", "fsdp2"])
def test_past_a_wrapper_that_shards_parameters_every_rank_raises_before_any_backward(
    zygote: Zygote, kind: str
) -> None:
    what = program(model="qwen3_tiny_untied", wrapper=kind, path="unwrapped")
    for one in run_arm(zygote, 2, what):
        assert [event["phase"] for event in one.events("exception")] == ["forward"]
        assert one.events("backward") == []
