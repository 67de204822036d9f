# SPDX-License-Identifier: Apache-2.0
"""Log-probs that a program hands over: one record and one file once new and old are there."""

import json
import math
import struct
from array import array
from pathlib import Path
from typing import Any

from agent_front import Connection, Ran, Record, run

START = """
import gradcheck
from gradcheck import log_probs
ddp = DDP(Net()) if size > 1 else Net()
optimizer = torch.optim.SGD(ddp.parameters(), lr=.1)
def logp(step, grad=True, rows=3):
    with torch.set_grad_enabled(grad):
        return torch.log_softmax(ddp(batch(step)), -1)[:rows]
def update(value):
    optimizer.zero_grad()
    value.mean().backward()
    optimizer.step()
    show(value.mean())
"""


def told(connection: Connection) -> list[Record]:
    return connection.of("logprob")


def one(script: str, **options: Any) -> tuple[Ran, list[Record]]:
    """Of a single process, which must go on whatever is handed over."""
    ran = run(START + script, ranks=0, **options)
    assert ran.codes == [0], ran.err
    return ran, told(ran.rank(0))


def header_of(ran: Ran, record: Record) -> dict[str, Any]:
    data = (ran.directory / record["file"]).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length])


def floats(ran: Ran, record: Record, key: str) -> list[float]:
    data = (ran.directory / record["file"]).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    entry = json.loads(data[8 : 8 + length])[key]
    assert entry["dtype"] == "F32"
    begin, end = entry["data_offsets"]
    return array("f", data[8 + length + begin : 8 + length + end]).tolist()


def brief(record: Record) -> tuple[Any, ...]:
    return record["step"], record["aliased"], record["updates"]


def test_every_rank_tells_of_new_and_old_in_one_record() -> None:
    script = """
for step in range(2):
    old = logp(step, grad=False)
    log_probs(old=old)
    new = logp(step)
    mask = torch.tensor([[1, 0], [1, 1], [0, 0]])
    log_probs(new=new, mask=mask, token_ids=torch.arange(6).reshape(3, 2))
    update(new)
"""
    ran = run(START + script)
    assert ran.codes == [0, 0], ran.err
    for rank in (0, 1):
        assert ran.rank(rank).notes() == []
        records = told(ran.rank(rank))
        assert [brief(record) for record in records] == [(0, False, 0), (1, False, 0)]
        for step, record in enumerate(records):
            assert record["file"] == f"payload/logp-rank-{rank}.step-{step}.train.safetensors"
            assert record["source"] == "gradcheck.log_probs"
            assert record["keys"] == ["mask", "new", "old", "token_ids"]
            header = header_of(ran, record)
            dtypes = {key: entry["dtype"] for key, entry in header.items()}
            assert dtypes == {"mask": "U8", "new": "F32", "old": "F32", "token_ids": "I64"}
            assert all(entry["shape"] == [3, 2] for entry in header.values())
            assert record["bytes"] == 6 * (1 + 4 + 4 + 8)
            assert floats(ran, record, "new") == floats(ran, record, "old")
    assert told(ran.rank(0))[0]["digest"] != told(ran.rank(1))[0]["digest"]


def test_the_job_prints_the_same_losses() -> None:
    script = """
for step in range(3):
    old = logp(step, grad=False)
    new = logp(step)
    log_probs(old=old, new=new, name="same")
    update(new)
"""
    with_agent = run(START + script)
    alone = run(START + script, with_agent=False, env={"PYTHONPATH": str(package_folder())})
    # Ranks may abort in Gloo's destructors after their last line: how they end is not asked here.
    assert len(alone.losses) == 6, alone.err
    assert with_agent.losses == alone.losses


def package_folder() -> Path:
    return Path(__file__).resolve().parents[3] / "probes/python"


def test_old_that_is_new_is_told_and_not_written() -> None:
    script = """
new = logp(0)
log_probs(new=new, old=new.detach(), name="detached")
log_probs(new=new, old=new, name="itself")
log_probs(new=new, name="apart"); log_probs(old=new.detach(), name="apart")
log_probs(old=new.detach(), name="before"); log_probs(new=new, name="before")
log_probs(new=new, old=new.detach().clone(), name="copy")
both = torch.zeros(2, 3, 2); log_probs(new=both[0], old=both[1], name="neighbours")
update(new)
"""
    _, records = one(script)
    told_aliased = {record["name"]: record["aliased"] for record in records}
    assert told_aliased == {
        "detached": True,
        "itself": True,
        "apart": True,
        "before": True,
        "copy": False,
        "neighbours": False,
    }
    for record in records:
        assert ("old" in record["keys"]) is not record["aliased"]


def test_updates_between_the_calls_are_counted() -> None:
    script = """
old = logp(0, grad=False)
log_probs(old=old)
for epoch in range(3):
    new = logp(0)
    log_probs(new=new)
    update(new)
"""
    _, records = one(script)
    assert [brief(record) for record in records] == [(0, False, 0), (1, False, 1), (2, False, 2)]


def test_with_both_in_one_call_the_same_old_is_known_again() -> None:
    script = """
old = [logp(0, grad=False), logp(0, grad=False) * 2]
for epoch in range(2):
    for part in range(2):
        new = logp(0)
        given = old[part] if part == 0 else old[part].clone()
        log_probs(new=new, old=given)
        update(new)
"""
    _, records = one(script, every=1)
    # The second was first seen after a step: how old it was then nobody knows.
    assert [record["updates"] for record in records] == [0, None, 2, 2]


def test_a_part_of_what_was_handed_over_as_a_whole_is_known() -> None:
    script = """
whole = torch.cat([logp(0, grad=False), logp(1, grad=False)])
log_probs(old=whole, name="whole")
for part in range(2):
    new = logp(part)
    log_probs(new=new, old=whole[3 * part : 3 * part + 3])
    update(new)
"""
    _, records = one(script)
    assert [record["updates"] for record in records] == [0, 1]


def test_an_old_of_unknown_age_stays_one() -> None:
    script = """
update(logp(0))
old = logp(1, grad=False)
for micro in range(2):
    log_probs(new=logp(1), old=old)
update(logp(1))
"""
    _, records = one(script)
    assert [record["updates"] for record in records] == [None, None]


def test_only_checked_steps_are_told() -> None:
    script = """
for step in range(8):
    log_probs(old=logp(step, grad=False))
    new = logp(step)
    log_probs(new=new)
    update(new)
"""
    _, records = one(script, every=5)
    assert [brief(record) for record in records] == [(s, False, 0) for s in (0, 1, 2, 5)]


def test_one_dimension_is_a_row_and_types_stay() -> None:
    script = """
new = logp(0)
mask = torch.tensor([True, False, True])
log_probs(new=new[:, 0].bfloat16(), old=new.detach()[:, 0].double(), mask=mask)
update(new)
"""
    ran, (record,) = one(script)
    header = header_of(ran, record)
    assert {key: (e["dtype"], e["shape"]) for key, e in header.items()} == {
        "mask": ("U8", [1, 3]),
        "new": ("BF16", [1, 3]),
        "old": ("F64", [1, 3]),
    }


def test_strides_and_what_is_written_to_later_are_no_matter() -> None:
    script = """
new = logp(0)
old = new.detach().clone().T.contiguous().T
log_probs(old=old)
old.zero_()
log_probs(new=new)
update(new)
"""
    ran, (record,) = one(script)
    assert floats(ran, record, "old") == floats(ran, record, "new")
    assert all(math.isfinite(value) and value < 0 for value in floats(ran, record, "old"))


UNFIT = {
    "new=new, old=old[:2]": "old is 2x2 and new is 3x2",
    "new=new, old=old, mask=torch.ones(2)": "mask is 1x2 and new is 3x2",
    "new=new, old=[1.0]": "old is no tensor, but a list",
    "new=new, old=old.long()": "old is of type torch.int64",
    "new=new.sum(), old=old": "new has 0 dimensions; 1 or 2 are expected",
    "new=new, old=old, token_ids=new": "token_ids is of type torch.float32",
}


def test_what_cannot_be_judged_is_said() -> None:
    calls = "".join(f"log_probs({call}, name={call!r})\n" for call in UNFIT)
    _, records = one(f"new, old = logp(0), logp(0, grad=False)\n{calls}update(new)\n")
    assert {record["name"]: record["text"] for record in records} == UNFIT
    assert all(record["file"] == "" and record["keys"] == [] for record in records)


def test_an_odd_extra_is_left_out_and_named() -> None:
    ran, (record,) = one(
        "new = logp(0)\nlog_probs(new=new, old=logp(0, False), entropy=new[0])\nupdate(new)\n"
    )
    assert record["keys"] == ["new", "old"]
    assert ran.rank(0).notes() == ["log-probs 'train': entropy is 1x2 and new is 3x2: left out"]


def test_the_budget_ends_the_files_and_not_the_records() -> None:
    script = """
big = torch.zeros(1024, 9000)
new = logp(0)
log_probs(new=big, old=big + 1)
log_probs(new=new, old=logp(0, grad=False))
update(new)
"""
    _, records = one(script)
    assert [bool(record["file"]) for record in records] == [False, True]
    assert records[0]["text"] == "the budget of 64 MiB a rank is spent"


def test_no_tensor_and_no_graph_outlives_its_step() -> None:
    script = """
import gc, weakref
new = logp(0)
old = new.detach().clone()
log_probs(old=old)
log_probs(new=new)
refs = [weakref.ref(new), weakref.ref(old), weakref.ref(new.untyped_storage())]
update(new)
del new, old
gc.collect()
print("alive", [ref() is not None for ref in refs])
"""
    ran, _ = one(script)
    assert "alive [False, False, False]" in ran.out[0]


def test_names_are_apart_and_files_have_plain_names() -> None:
    script = """
new, old = logp(0), logp(0, grad=False)
log_probs(new=new, name="a/../b"); log_probs(old=old, name="c"); log_probs(old=old, name="a/../b")
log_probs(new=new, old=old, name="a/../b")
update(new)
"""
    _, records = one(script)
    stem = "payload/logp-rank-0.step-0.a----b"
    files = [f"{stem}.safetensors", f"{stem}.2.safetensors"]
    assert [(record["name"], record["file"]) for record in records] == [
        ("a/../b", file) for file in files
    ]


def test_evidence_in_a_folder_has_its_files_beside_it(tmp_path: Path) -> None:
    script = """
new = logp(0)
log_probs(new=new, old=logp(0, grad=False))
update(new)
"""
    ran = run(START + script, ranks=0, socket="", evidence=str(tmp_path))
    assert ran.codes == [0], ran.err
    (lines,) = tmp_path.glob("*/rank-0.0.jsonl")
    records = [json.loads(line) for line in lines.read_text().splitlines()]
    (record,) = [record for record in records if record["type"] == "logprob"]
    assert (lines.parent / record["file"]).stat().st_size > record["bytes"]


def test_compiled_code_may_call_it() -> None:
    """Without a break in its graph, which might be an error; so its arrays are not seen."""
    script = """
def step_of(x):
    new = torch.log_softmax(x, -1)
    gradcheck.log_probs(new=new, old=new.detach())
    return new
compiled = torch.compile(step_of, backend="eager", fullgraph=True)
update(compiled(ddp(batch(0))))
"""
    ran, records = one(script)
    assert records == []
    notes = ran.rank(0).notes()
    assert notes == ["log_probs was called in compiled code: its arrays are not seen"]
