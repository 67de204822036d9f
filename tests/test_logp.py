# SPDX-License-Identifier: Apache-2.0
"""gradcheck logp, end to end: formats, names, exit codes, files that are not what they claim."""

import json
import random
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest
from conftest import Gradcheck

ROWS, TOKENS = 32, 64


def as_f32(value: float) -> float:
    return struct.unpack("<f", struct.pack("<f", value))[0]


def bf16_bits(value: float) -> int:
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def as_bf16(value: float) -> float:
    return struct.unpack("<f", struct.pack("<I", bf16_bits(value) << 16))[0]


def log_probs(seed: int = 1) -> list[float]:
    source = random.Random(seed)
    return [as_f32(-source.expovariate(0.5) - 0.01) for _ in range(ROWS * TOKENS)]


def noisy(values: list[float], sd: float = 0.015, seed: int = 2) -> list[float]:
    source = random.Random(seed)
    return [as_f32(min(0.0, value + source.gauss(0, sd))) for value in values]


PACKED = {
    "F64": lambda v: struct.pack(f"<{len(v)}d", *v),
    "F32": lambda v: struct.pack(f"<{len(v)}f", *v),
    "F16": lambda v: struct.pack(f"<{len(v)}e", *v),
    "BF16": lambda v: struct.pack(f"<{len(v)}H", *map(bf16_bits, v)),
    "U8": lambda v: bytes(v),
    "I64": lambda v: struct.pack(f"<{len(v)}q", *v),
}


def safetensors(path: Path, **arrays: tuple[str, list[int], list[Any]]) -> Path:
    header: dict[str, Any] = {}
    data = b""
    for name, (dtype, shape, values) in arrays.items():
        packed = PACKED[dtype](values)
        header[name] = {
            "dtype": dtype,
            "shape": shape,
            "data_offsets": [len(data), len(data) + len(packed)],
        }
        data += packed
    return raw_safetensors(path, json.dumps(header).encode(), data)


def raw_safetensors(path: Path, header: bytes, data: bytes) -> Path:
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    return path


def npy_bytes(values: list[float], shape: tuple[int, ...], descr: str = "<f4") -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (63 - (10 + len(text)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + PACKED["F32"](values)


def npz(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return path


def pair(path: Path, old: list[float], new: list[float], dtype: str = "F32") -> Path:
    shape = [ROWS, TOKENS]
    return safetensors(path, old=(dtype, shape, old), new=(dtype, shape, new))


def arm_of(report: Any) -> Any:
    return report["scenarios"][0]["arms"][0]


def judged(gradcheck: Gradcheck, *arguments: str | Path) -> tuple[int, Any]:
    result = gradcheck("logp", *arguments, "--format", "json")
    assert result.err == ""
    return result.code, arm_of(result.json())


def test_equal_log_probs_are_bitwise(gradcheck: Gradcheck, tmp_path: Path) -> None:
    old = log_probs()
    code, arm = judged(gradcheck, pair(tmp_path / "a.safetensors", old, old))
    assert code == 0
    assert arm["headline"] == "old and new are bitwise equal: 2048 tokens"
    assert arm["logp"][0]["reading"]["bitwise"]
    assert arm["logp"][0]["reading"]["counts"]["identical"] == 2048
    assert arm["logp"][0]["reading"]["statistics"]["max_abs"] == 0


def test_new_in_bf16_is_found_and_said(gradcheck: Gradcheck, tmp_path: Path) -> None:
    old = log_probs()
    path = pair(tmp_path / "a.safetensors", old, [as_bf16(value) for value in old])
    code, arm = judged(gradcheck, path)
    assert code == 1
    assert [f["code"] for f in arm["findings"]] == ["GC502"]
    assert arm["causes"][0]["cause"] == "bf16_log_softmax"
    assert arm["causes"][0]["confidence"] == "certain"
    text = gradcheck("logp", path).out
    assert "new was stored in bf16" in text
    assert "harm small: no token outside ±20 %" in text
    assert "worst tokens" in text


def test_another_engine_may_send_bf16(gradcheck: Gradcheck, tmp_path: Path) -> None:
    new = log_probs()
    old = [as_bf16(value) for value in new]
    path = pair(tmp_path / "a.safetensors", old, new)
    code, arm = judged(gradcheck, path, "--regime", "other_engine")
    assert code == 0
    assert arm["findings"][0]["severity"] == "warning"
    assert judged(gradcheck, path, "--regime", "other_engine", "--fail-on", "warning")[0] == 1


def test_noise_of_two_ranks_passes(gradcheck: Gradcheck, tmp_path: Path) -> None:
    files = []
    for rank in range(2):
        old = log_probs(rank)
        files.append(pair(tmp_path / f"rank{rank}.safetensors", old, noisy(old, seed=rank + 5)))
    code, arm = judged(gradcheck, *files)
    assert code == 0
    assert arm["findings"] == arm["causes"] == []
    assert arm["logp"][0]["reading"]["counts"]["ranks"] == 2
    assert [group["label"] for group in arm["logp"][0]["reading"]["by_rank"]] == ["0", "1"]
    assert arm["logp"][0]["reading"]["regime_source"] == "assumed"


@pytest.mark.parametrize("dtype", ["F64", "F32", "F16", "BF16"])
def test_every_float_type_is_read(gradcheck: Gradcheck, tmp_path: Path, dtype: str) -> None:
    old = [as_bf16(max(value, -8.0)) for value in log_probs()]
    exact = old if dtype != "F16" else [struct.unpack("<e", struct.pack("<e", v))[0] for v in old]
    code, arm = judged(gradcheck, pair(tmp_path / "a.safetensors", exact, exact, dtype))
    assert code == 0
    assert arm["logp"][0]["reading"]["statistics"]["surprisal"] == pytest.approx(
        -sum(exact) / len(exact)
    )


NAMES = [
    ("old", "new", "mask"),
    ("old_resp_logp", "mb_resp_logp", "resp_policy_mask"),
    ("rollout_log_probs", "old_log_probs", "response_mask"),
    ("sampling_per_token_logps", "old_per_token_logps", "completion_mask"),
    ("rollout_log_probs", "action_log_probs", "action_mask"),
    ("rollout_log_probs", "log_probs", "loss_masks"),
    ("generation_logprobs", "prev_logprobs", "token_mask"),
    ("inference_logprobs", "trainer_logprobs", "loss_mask"),
    ("infer_logprobs", "old_log_probs", "response_mask"),
    ("logprobs", "prox_logp", "loss_mask"),
]


@pytest.mark.parametrize("names", NAMES, ids="-".join)
def test_every_systems_names_are_known(
    gradcheck: Gradcheck, tmp_path: Path, names: tuple[str, str, str]
) -> None:
    old = log_probs()
    shape = [ROWS, TOKENS]
    mask = [1] * 1000 + [0] * (ROWS * TOKENS - 1000)
    new = old[:1000] + [value - 3 for value in old[1000:]]
    arrays = zip(
        names, [("F32", shape, old), ("F32", shape, new), ("U8", shape, mask)], strict=True
    )
    code, arm = judged(gradcheck, safetensors(tmp_path / "a.safetensors", **dict(arrays)))
    assert code == 0
    assert arm["logp"][0]["reading"]["counts"]["compared"] == 1000


def test_formats_say_the_same(gradcheck: Gradcheck, tmp_path: Path) -> None:
    old = log_probs()
    new = noisy(old)
    shape = (ROWS, TOKENS)
    (tmp_path / "old.npy").write_bytes(npy_bytes(old, shape))
    (tmp_path / "new.npy").write_bytes(npy_bytes(new, shape))
    archive = npz(tmp_path / "a.npz", old=npy_bytes(old, shape), new=npy_bytes(new, shape))
    lines = tmp_path / "a.jsonl"
    rows = [slice(row * TOKENS, (row + 1) * TOKENS) for row in range(ROWS)]
    lines.write_text("".join(json.dumps({"old": old[r], "new": new[r]}) + "\n" for r in rows))
    calls: list[list[str | Path]] = [
        [pair(tmp_path / "a.safetensors", old, new)],
        [archive],
        ["--old", f"{archive}:old", "--new", f"{archive}:new"],
        ["--old", tmp_path / "old.npy", "--new", tmp_path / "new.npy"],
        [lines],
    ]
    readings = [judged(gradcheck, *call)[1]["logp"][0]["reading"] for call in calls]
    assert all(reading == readings[0] for reading in readings)


def test_ragged_rows_of_json_lines(gradcheck: Gradcheck, tmp_path: Path) -> None:
    path = tmp_path / "rank_0.jsonl"
    old = log_probs()
    with path.open("w") as file:
        for row in range(ROWS):
            part = old[row * TOKENS : row * TOKENS + 20 + row]
            mask = [False, *[True] * (len(part) - 1)]
            line = {"inference_logprobs": part, "trainer_logprobs": part, "loss_mask": mask}
            file.write(json.dumps(line | {"token_ids": list(range(len(part))), "env": "x"}) + "\n")
    code, arm = judged(gradcheck, path)
    assert code == 0
    assert arm["logp"][0]["reading"]["counts"]["masked_out"] == ROWS
    assert arm["logp"][0]["reading"]["counts"]["tokens"] == sum(19 + row for row in range(ROWS))


def test_null_counts_as_not_finite(gradcheck: Gradcheck, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"old": [-1.5, None, -2.25], "new": [-1.5, -0.5, -2.25]}) + "\n")
    code, arm = judged(gradcheck, path)
    assert code == 1
    assert arm["logp"][0]["reading"]["counts"]["nonfinite_old"] == 1
    assert "GC503" in [f["code"] for f in arm["findings"]]


def test_old_that_is_new_proves_nothing(gradcheck: Gradcheck, tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(npy_bytes(log_probs(), (ROWS, TOKENS)))
    result = gradcheck("logp", "--old", path, "--new", tmp_path / "." / "a.npy", "-q")
    assert result.code == 3
    assert "ratio is 1 by construction" in result.out


def test_declared_sampling_is_a_reading(gradcheck: Gradcheck, tmp_path: Path) -> None:
    new = log_probs()
    source = random.Random(4)
    old = [as_f32(min(0.0, value + 0.105 - source.random() * 0.01)) for value in new]
    path = pair(tmp_path / "a.safetensors", old, new)
    code, arm = judged(gradcheck, path)
    assert code == 1
    assert arm["causes"][0]["cause"] == "renormalised_sampling"
    code, arm = judged(gradcheck, path, "--sampling", "top_p=0.9")
    assert code == 0
    assert arm["logp"][0]["reading"]["signatures"][0]["declared"]
    code, arm = judged(gradcheck, path, "--sampling", "top_p=0.99")  # keeps more than that
    assert code == 1


def test_three_way_reading(gradcheck: Gradcheck, tmp_path: Path) -> None:
    old = log_probs()
    shape = [ROWS, TOKENS]
    path = safetensors(
        tmp_path / "a.safetensors",
        old=("F32", shape, old),
        new=("F32", shape, old),
        rollout=("F32", shape, noisy(old)),
        ref=("F32", shape, noisy(old, 0.5)),
    )
    pairs = judged(gradcheck, path)[1]["logp"][0]["reading"]["pairs"]
    assert [p["name"] for p in pairs] == ["old - rollout", "new - rollout", "new - ref"]
    assert pairs[2]["mean_abs"] > 0.3 > 0.02 > pairs[0]["mean_abs"] > 0.01


def test_markdown_and_junit_have_it(gradcheck: Gradcheck, tmp_path: Path) -> None:
    old = log_probs()
    path = pair(tmp_path / "a.safetensors", old, [as_bf16(value) for value in old])
    for form in ("markdown", "junit"):
        assert "new was stored in bf16" in gradcheck("logp", path, "--format", form).out


def test_micro_batches_that_a_dump_names_have_a_profile(
    gradcheck: Gradcheck, tmp_path: Path
) -> None:
    old = log_probs()
    new = noisy(old, 0.001)
    for row in (2, 5):  # of micro-batches 2 and 5
        for i in range(row * TOKENS, (row + 1) * TOKENS):
            new[i] = as_f32(old[i] - 0.5)
    shape = [ROWS, TOKENS]
    numbers = [row % 8 for row in range(ROWS)]
    path = safetensors(
        tmp_path / "a.safetensors",
        old=("F32", shape, old),
        new=("F32", shape, new),
        micro_batch=("I64", [ROWS, 1], numbers),
    )
    lines = tmp_path / "a.jsonl"
    with lines.open("w") as file:
        for row, number in enumerate(numbers):
            part = slice(row * TOKENS, (row + 1) * TOKENS)
            line = {"old": old[part], "new": new[part], "micro_batch": number}
            file.write(json.dumps(line) + "\n")
    for dump in (path, lines):
        groups = judged(gradcheck, dump)[1]["logp"][0]["reading"]["by_micro_batch"]
        assert [group["label"] for group in groups] == [str(number) for number in range(8)]
        worst = sorted(groups, key=lambda group: group["mean_abs"])[-2:]
        assert {group["label"] for group in worst} == {"2", "5"}
        assert "micro-batches, 0 to 7" in gradcheck("logp", dump).out


def test_rows_of_json_lines_may_be_empty(gradcheck: Gradcheck, tmp_path: Path) -> None:
    old = log_probs()
    path = tmp_path / "a.jsonl"
    with path.open("w") as file:
        for row in range(ROWS):
            part = [] if row in (0, 3) else old[row * TOKENS : (row + 1) * TOKENS]
            tools = [] if row < 5 else ["search"]
            line = {"old": part, "new": part, "mask": [1] * len(part), "tools": tools}
            file.write(json.dumps(line) + "\n")
    code, arm = judged(gradcheck, path)
    assert code == 0
    assert arm["logp"][0]["reading"]["counts"]["compared"] == (ROWS - 2) * TOKENS
