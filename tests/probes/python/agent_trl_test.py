# SPDX-License-Identifier: Apache-2.0
"""TRL's trainers are recorded without a line in the script; played here by classes with the same
methods, which call each other as TRL's do."""

from pathlib import Path

from agent_front import Ran, Record, run
from agent_log_probs_test import brief, floats, header_of, told

TRAINER = """
import torch
class {name}:
    def __init__(self, model, shuffled=False, with_old=False, with_tools=False):
        self.model, self.shuffled = model, shuffled
        self.with_old, self.with_tools = with_old, with_tools
    def _get_per_token_logps_and_entropies(self, model, ids, mask, keep, compute_entropy=False):
        logps = torch.log_softmax(model(ids.float()), -1)
        return logps, (logps.exp().sum(-1, keepdim=True) * logps), None
    def _generate_and_score_completions(self, inputs):
        ids = inputs["completion_ids"]
        output = dict(inputs, completion_mask=torch.ones_like(ids[:, :2]))
        with torch.no_grad():
            old, _, _ = self._get_per_token_logps_and_entropies(self.model, ids, None, 2)
            ref, _, _ = self._get_per_token_logps_and_entropies(self.model, 2 * ids, None, 2)
{scored}
        if self.with_tools:
            output["tool_mask"] = torch.tensor([[1, 0]] * len(ids))
        return output
    def _compute_loss(self, model, inputs):
        ids = inputs["completion_ids"]
        logps, _, _ = self._get_per_token_logps_and_entropies(model, ids, None, 2, True)
        return logps.mean()
    def compute_loss(self, model, inputs):
        return self._compute_loss(model, inputs)
"""
GRPO = """
        if self.with_old:
            output["old_per_token_logps"] = old
        output["ref_per_token_logps"] = ref
        output["sampling_per_token_logps"] = old - 1
"""
RLOO = """
        output["old_logps"] = (old * output["completion_mask"]).sum(1)
        output["completion_ids"] = ids[:, :2]
"""

SCRIPT = """
from trl.trainer.{module} import {name}
class Prompts(Net):
    def forward(self, ids):
        return super().forward(torch.cat([ids, ids], 1)[:, :4])
ddp = DDP(Prompts()) if size > 1 else Prompts()
optimizer = torch.optim.SGD(ddp.parameters(), lr=.1)
def train(trainer, steps=2, epochs=1):
    for step in range(steps):
        ids = torch.arange(4 * rank + step, 8 + 4 * rank + step).reshape(4, 2)
        batch = trainer._generate_and_score_completions({{"completion_ids": ids}})
        if trainer.shuffled:
            batch = {{key: value.flip(0) for key, value in batch.items()}}
        for epoch in range(epochs):
            loss = trainer.compute_loss(trainer.model, batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            show(loss)
"""


def play(
    folder: Path, kind: str, script: str, ranks: int = 0, version: str = "1.12.0", body: str = ""
) -> Ran:
    """Runs the script with a package `trl` of that version which has one trainer."""
    package = folder / "trl" / "trainer"
    package.mkdir(parents=True)
    (folder / "trl" / "__init__.py").write_text(f"__version__ = {version!r}\n")
    (package / "__init__.py").write_text("")
    name, module = f"{kind}Trainer", f"{kind.lower()}_trainer"
    scored = GRPO if kind == "GRPO" else RLOO
    text = body or TRAINER.format(name=name, scored=scored)
    (package / f"{module}.py").write_text(text)
    found = f"sys.path.insert(0, {str(folder)!r})\n"
    ran = run(found + SCRIPT.format(name=name, module=module) + script, ranks=ranks)
    assert set(ran.codes) == {0}, ran.err
    return ran


def records_of(ran: Ran) -> list[Record]:
    return told(ran.rank(0))


def test_grpo_without_old_is_one_by_construction(tmp_path: Path) -> None:
    ran = play(tmp_path, "GRPO", "train(GRPOTrainer(ddp))", ranks=2)
    for rank in (0, 1):
        assert ran.rank(rank).notes() == []
        records = told(ran.rank(rank))
        assert [brief(record) for record in records] == [(0, True, 0), (1, True, 0)]
        assert {record["source"] for record in records} == {"trl GRPOTrainer"}
        assert {record["name"] for record in records} == {"train"}
        keys = ["entropy", "mask", "new", "ref", "rollout", "token_ids"]
        assert all(record["keys"] == keys for record in records)


def test_grpo_with_old_over_two_epochs_and_tools(tmp_path: Path) -> None:
    script = "train(GRPOTrainer(ddp, with_old=True, with_tools=True), steps=1, epochs=2)"
    ran = play(tmp_path, "GRPO", script)
    records = records_of(ran)
    assert [brief(record) for record in records] == [(0, False, 0), (1, False, 1)]
    assert floats(ran, records[0], "new") == floats(ran, records[0], "old")
    assert floats(ran, records[1], "new") != floats(ran, records[1], "old")
    assert header_of(ran, records[0])["mask"]["dtype"] == "U8"
    data = (ran.directory / records[0]["file"]).read_bytes()
    begin, end = header_of(ran, records[0])["mask"]["data_offsets"]
    start = len(data) - max(e["data_offsets"][1] for e in header_of(ran, records[0]).values())
    assert list(data[start + begin : start + end]) == [1, 0] * 4


def test_rloo_finds_the_old_of_rows_that_were_shuffled(tmp_path: Path) -> None:
    ran = play(tmp_path, "RLOO", "train(RLOOTrainer(ddp, shuffled=True), steps=2)")
    records = records_of(ran)
    assert [brief(record) for record in records] == [(0, False, 0), (1, False, 0)]
    for record in records:
        assert record["keys"] == ["entropy", "mask", "new", "old", "token_ids"]
        assert floats(ran, record, "new") == floats(ran, record, "old")


def test_an_evaluation_and_an_unchecked_step_tell_nothing(tmp_path: Path) -> None:
    script = """
trainer = GRPOTrainer(ddp)
train(trainer, steps=4)
trainer.model.eval()
prompts = {"completion_ids": torch.ones(4, 2)}
trainer.compute_loss(ddp, trainer._generate_and_score_completions(prompts))
"""
    ran = play(tmp_path, "GRPO", script)
    assert [record["step"] for record in records_of(ran)] == [0, 1, 2]
    assert ran.rank(0).notes() == []


def test_an_unknown_version_is_said(tmp_path: Path) -> None:
    ran = play(tmp_path, "GRPO", "train(GRPOTrainer(ddp), steps=1)", version="2.0.0")
    assert records_of(ran) == []
    assert ran.rank(0).notes() == [
        "log-probs of trl 2.0.0: unknown version of GRPOTrainer, not recorded"
    ]


def test_a_trainer_without_the_methods_is_said(tmp_path: Path) -> None:
    body = TRAINER.format(name="GRPOTrainer", scored=GRPO).replace("_compute_loss", "_other_loss")
    ran = play(tmp_path, "GRPO", "train(GRPOTrainer(ddp), steps=1)", body=body)
    assert records_of(ran) == []
    assert ran.rank(0).notes() == [
        "log-probs of trl 1.12.0: unknown version of GRPOTrainer, not recorded"
    ]
