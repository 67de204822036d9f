# SPDX-License-Identifier: Apache-2.0
"""gradcheck compare, end to end: what ranks hold, what the reduction was, another run, which file
is whose."""

import os
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Gradcheck, Result
from test_logp import npy_bytes, npz, safetensors

ELEMENTS = 600
NAMES = [f"layers.{i}.weight" for i in range(8)]
Tensors = dict[str, list[float]]


def f32(value: float) -> float:
    return struct.unpack("<f", struct.pack("<f", value))[0]


def gradients(seed: int) -> Tensors:
    source = random.Random(seed)
    return {name: [f32(source.gauss(0, 1)) for _ in range(ELEMENTS)] for name in NAMES}


LOCALS = [gradients(seed) for seed in range(4)]


def mean(ranks: int = 2, weight: float | None = None) -> Tensors:
    share = 1 / ranks if weight is None else weight
    return {
        name: [
            f32(share * sum(column))
            for column in zip(*(g[name] for g in LOCALS[:ranks]), strict=True)
        ]
        for name in NAMES
    }


def dump(path: Path, tensors: Tensors, dtype: str = "F32") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {name: (dtype, [len(values)], values) for name, values in tensors.items()}
    return safetensors(path, **arrays)


def dumps(folder: Path, ranks: list[Tensors], dtype: str = "F32") -> Path:
    for rank, tensors in enumerate(ranks):
        dump(folder / f"rank{rank}.safetensors", tensors, dtype)
    return folder


def changed(tensors: Tensors, name: str, at: int, value: float) -> Tensors:
    copy = dict(tensors)
    copy[name] = list(copy[name])
    copy[name][at] = value
    return copy


def compared(gradcheck: Gradcheck, *arguments: str | Path) -> tuple[Result, dict[str, Any]]:
    result = gradcheck("compare", *arguments, "--format", "json")
    assert result.out, result.err
    return result, result.json()["scenarios"][0]["arms"][0]


def codes(arm: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in arm["findings"]]


def causes(arm: dict[str, Any]) -> list[str]:
    return [claim["cause"] for claim in arm["causes"]]


# --- ranks against each other


def test_equal_dumps_pass_and_say_how_much(gradcheck: Gradcheck, tmp_path: Path) -> None:
    folder = dumps(tmp_path / "d", [mean(), mean()])
    result, arm = compared(gradcheck, folder)
    assert (result.code, arm["outcome"]) == (0, "consistent")
    totals = arm["totals"]
    assert (totals["compared"], totals["inventory"], totals["differed"]) == (8, 8, 0)
    assert totals["max_abs"] == 0
    assert "reduction (no --local)" in arm["scope"]["not_checked"]
    assert arm["dumps"][0]["tensors"] == 8
    assert [file["rank"] for file in arm["dumps"][0]["files"]] == [0, 1]


def test_the_first_line_is_the_answer(gradcheck: Gradcheck, tmp_path: Path) -> None:
    folder = dumps(tmp_path / "d", LOCALS[:2])
    assert "8/8 differed" in gradcheck("compare", folder).first
    same = dumps(tmp_path / "same", [mean(), mean()])
    assert "0/8 differed" in gradcheck("compare", same).first


def test_ranks_that_share_nothing(gradcheck: Gradcheck, tmp_path: Path) -> None:
    result, arm = compared(gradcheck, dumps(tmp_path / "d", LOCALS[:2]))
    assert (result.code, arm["outcome"], arm["totals"]["differed"]) == (1, "inconsistent", 8)
    assert codes(arm) == ["GC101"]
    assert causes(arm) == ["bypass"]
    largest = max(
        abs(a - b) for n in NAMES for a, b in zip(LOCALS[0][n], LOCALS[1][n], strict=True)
    )
    assert arm["totals"]["max_abs"] == pytest.approx(largest, rel=1e-12)
    reading = arm["dumps"][0]
    assert reading["clusters"] == [{"clusters": "{0}{1}", "tensors": 8}]
    assert reading["differing_elements"] == 8 * ELEMENTS
    assert sum(row["elements"] for row in reading["ulps"]) == 8 * ELEMENTS


def test_a_hair_everywhere_is_no_bypass(gradcheck: Gradcheck, tmp_path: Path) -> None:
    near = {n: [f32(v * (1 + 2**-23)) for v in values] for n, values in mean().items()}
    arm = compared(gradcheck, dumps(tmp_path / "d", [mean(), near]))[1]
    assert (arm["totals"]["differed"], causes(arm)) == (8, ["unexplained"])


def test_one_bit_in_one_element(gradcheck: Gradcheck, tmp_path: Path) -> None:
    one, two = dict(mean()), changed(mean(), NAMES[3], 17, 1.0)
    one = changed(one, NAMES[3], 17, f32(1.0 + 2**-22))
    result, arm = compared(gradcheck, dumps(tmp_path / "d", [one, two]))
    assert (result.code, arm["totals"]["differed"]) == (1, 1)
    (row,) = arm["dumps"][0]["rows"]
    assert (row["name"], row["differing_elements"], row["max_ulps"]) == (NAMES[3], 1, 2)
    assert row["max_abs"] == 2**-22
    assert [(u["from"], u["to"]) for u in arm["dumps"][0]["ulps"] if u["elements"]] == [(2, 4)]


@pytest.mark.parametrize("at", [0, 1, ELEMENTS - 1])
def test_a_difference_anywhere_is_found(gradcheck: Gradcheck, tmp_path: Path, at: int) -> None:
    folder = dumps(tmp_path / "d", [mean(), changed(mean(), NAMES[-1], at, 9.0)])
    assert compared(gradcheck, folder)[1]["totals"]["differed"] == 1


def test_a_difference_behind_the_first_window(gradcheck: Gradcheck, tmp_path: Path) -> None:
    """Files are read a few megabytes at a time."""
    size = 3 * 1024 * 1024 + 5
    raw = bytearray(random.Random(1).randbytes(4096)) * (4 * size // 4096 + 1)
    for rank, last in enumerate([1, 2]):
        raw[4 * size - 1] = last
        header = f'{{"w":{{"dtype":"I32","shape":[{size}],"data_offsets":[0,{4 * size}]}}}}'
        text = struct.pack("<Q", len(header)) + header.encode()
        (tmp_path / f"r{rank}.safetensors").write_bytes(text + raw[: 4 * size])
    files = [tmp_path / f"r{rank}.safetensors" for rank in range(2)]
    assert compared(gradcheck, *files)[1]["totals"]["differed"] == 1


def test_clusters_tell_sub_groups_from_one_bad_rank(gradcheck: Gradcheck, tmp_path: Path) -> None:
    half = dumps(tmp_path / "half", [LOCALS[0], LOCALS[0], LOCALS[1], LOCALS[1]])
    arm = compared(gradcheck, half)[1]
    assert arm["dumps"][0]["clusters"][0]["clusters"] == "{0,1}{2,3}"
    assert causes(arm) == ["sub_group"]
    bad = changed(mean(), NAMES[2], 5, 3.0)
    arm = compared(gradcheck, dumps(tmp_path / "bad", [mean(), mean(), bad, mean()]))[1]
    assert arm["dumps"][0]["clusters"][0]["clusters"] == "{0,1,3}{2}"
    assert causes(arm) == ["corrupted_rank"]
    assert arm["findings"][0]["ranks"] == [2]


def test_a_tensor_that_one_rank_lacks(gradcheck: Gradcheck, tmp_path: Path) -> None:
    less = {name: values for name, values in mean().items() if name != NAMES[4]}
    result, arm = compared(gradcheck, dumps(tmp_path / "d", [mean(), less]))
    assert result.code == 1
    assert "GC102" in codes(arm)
    (found,) = [f for f in arm["findings"] if f["code"] == "GC102"]
    assert (found["names"], found["ranks"]) == ([NAMES[4]], [1])


@pytest.mark.parametrize(
    ("dtype", "shape"), [("F16", [ELEMENTS]), ("F32", [ELEMENTS, 1]), ("F32", [2, ELEMENTS // 2])]
)
def test_another_type_or_shape(
    gradcheck: Gradcheck, tmp_path: Path, dtype: str, shape: list[int]
) -> None:
    values = [float(i % 7) for i in range(ELEMENTS)]
    first = safetensors(tmp_path / "a.safetensors", w=("F32", [ELEMENTS], values))
    other = safetensors(tmp_path / "b.safetensors", w=(dtype, shape, values))
    result, arm = compared(gradcheck, first, other)
    assert result.code == 1
    assert "GC103" in codes(arm)
    assert arm["dumps"][0]["max_ulps"] is None


def test_signs_of_zero_and_payloads_of_nan_are_told_apart(
    gradcheck: Gradcheck, tmp_path: Path
) -> None:
    zero = dumps(
        tmp_path / "zero",
        [changed(mean(), NAMES[0], 3, 0.0), changed(mean(), NAMES[0], 3, -0.0)],
    )
    result, arm = compared(gradcheck, zero)
    assert result.code == 1
    assert arm["tensors"][0]["sign_of_zero_only"] is True
    assert arm["dumps"][0]["sign_of_zero_elements"] == 1
    nans = []
    for rank, payload in enumerate([1, 2]):
        bits = [0x7FC00000 + payload, 0x3F800000]
        raw = [struct.unpack("<f", struct.pack("<I", bit))[0] for bit in bits]
        path = safetensors(tmp_path / f"n{rank}.safetensors", w=("F32", [2], raw))
        data = path.read_bytes()
        path.write_bytes(data[:-8] + struct.pack("<II", *bits))
        nans.append(path)
    result, arm = compared(gradcheck, *nans)
    assert result.code == 1
    assert arm["tensors"][0]["nan_payload_only"] is True
    assert arm["dumps"][0]["rows"][0]["nan_elements"] == 1


def test_a_nan_on_every_rank_alike_is_no_pass(gradcheck: Gradcheck, tmp_path: Path) -> None:
    bad = changed(mean(), NAMES[1], 4, float("nan"))
    result, arm = compared(gradcheck, dumps(tmp_path / "d", [bad, bad]))
    assert (result.code, codes(arm)) == (1, ["GC701"])
    assert arm["totals"]["differed"] == 0
    worse = changed(mean(), NAMES[1], 4, float("-inf"))
    assert compared(gradcheck, dumps(tmp_path / "e", [worse, worse]))[0].code == 1


def test_an_attention_mask_is_no_finding(gradcheck: Gradcheck, tmp_path: Path) -> None:
    mask = {"mask": [0.0, float("-inf")] * 8}
    result, arm = compared(gradcheck, dumps(tmp_path / "d", [mean() | mask, mean() | mask]))
    assert result.code == 0
    assert [finding["severity"] for finding in arm["findings"]] == ["note"]


@pytest.mark.parametrize("dtype", ["F64", "F32", "F16", "BF16"])
def test_every_type_with_values(gradcheck: Gradcheck, tmp_path: Path, dtype: str) -> None:
    one = {"w": [0.5, 1.0, -2.0, 0.0]}
    same = dumps(tmp_path / "same", [one, one], dtype)
    assert compared(gradcheck, same)[0].code == 0
    other = dumps(tmp_path / "other", [one, {"w": [0.5, 1.0, 2.0, 0.0]}], dtype)
    reading = compared(gradcheck, other)[1]["dumps"][0]
    assert (reading["differing_elements"], reading["sign_changes"]) == (1, 1)
    nan = dumps(tmp_path / "nan", [{"w": [1.0, float("nan")]}] * 2, dtype)
    assert compared(gradcheck, nan)[0].code == 1


# --- what proves nothing


def test_one_dump_alone_proves_nothing(gradcheck: Gradcheck, tmp_path: Path) -> None:
    result, arm = compared(gradcheck, dump(tmp_path / "a.safetensors", mean()))
    assert (result.code, arm["outcome"], codes(arm)) == (3, "inconclusive", ["GC604"])


def test_files_without_tensors_prove_nothing(gradcheck: Gradcheck, tmp_path: Path) -> None:
    result, arm = compared(gradcheck, dumps(tmp_path / "d", [{}, {}]))
    assert (result.code, codes(arm)) == (3, ["GC604"])
    empty = dumps(tmp_path / "e", [{"w": []}, {"w": []}])
    assert compared(gradcheck, empty)[0].code == 3


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_zeros_everywhere_prove_nothing(gradcheck: Gradcheck, tmp_path: Path, zero: float) -> None:
    nothing = {name: [zero] * 5 for name in NAMES}
    result, arm = compared(gradcheck, dumps(tmp_path / "d", [nothing, nothing]))
    assert (result.code, codes(arm)) == (3, ["GC602"])


def test_some_zeros_are_told(gradcheck: Gradcheck, tmp_path: Path) -> None:
    some = mean() | {NAMES[0]: [0.0] * ELEMENTS}
    result, arm = compared(gradcheck, dumps(tmp_path / "d", [some, some]))
    assert result.code == 0
    assert arm["notes"] == ["1 of 8 proved nothing: zero or absent on every rank"]


# --- the reduction


def audited(
    gradcheck: Gradcheck, tmp_path: Path, reduced: list[Tensors], *more: str
) -> tuple[Result, dict[str, Any]]:
    local = dumps(tmp_path / "local", LOCALS[: len(reduced)])
    return compared(gradcheck, dumps(tmp_path / "d", reduced), "--local", local, *more)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_the_mean_of_the_locals_passes(gradcheck: Gradcheck, tmp_path: Path, ranks: int) -> None:
    result, arm = audited(gradcheck, tmp_path, [mean(ranks)] * ranks)
    assert (result.code, arm["outcome"]) == (0, "consistent"), codes(arm)
    assert 0 < arm["totals"]["bound_used"] <= 1
    assert arm["tensors"] == []


REDUCTIONS: dict[str, tuple[Callable[[], list[Tensors]], str, str]] = {
    "bypass": (lambda: LOCALS[:2], "GC201", "bypass"),
    "summed": (lambda: [mean(2, 1)] * 2, "GC204", "sum_not_mean"),
    "divided twice": (lambda: [mean(2, 0.25)] * 2, "GC204", "double_division"),
    "a rank lost": (lambda: [mean(1, 0.5)] * 2, "GC207", "lost_rank"),
    "half reduced": (
        lambda: [{n: (mean() if i < 4 else g)[n] for i, n in enumerate(NAMES)} for g in LOCALS[:2]],
        "GC202",
        "unexplained",
    ),
    "one element": (lambda: [changed(mean(), NAMES[0], 5, 4.0)] * 2, "GC209", "unexplained"),
}


@pytest.mark.parametrize("case", REDUCTIONS)
def test_a_wrong_reduction_has_its_name(gradcheck: Gradcheck, tmp_path: Path, case: str) -> None:
    reduced, code, cause = REDUCTIONS[case]
    result, arm = audited(gradcheck, tmp_path, reduced())
    assert (result.code, arm["outcome"]) == (1, "inconsistent")
    assert code in codes(arm)
    assert causes(arm)[0] == cause


def test_another_reduction_may_be_declared(gradcheck: Gradcheck, tmp_path: Path) -> None:
    total = [mean(2, 1)] * 2
    assert audited(gradcheck, tmp_path, total, "--reduction", "sum")[0].code == 0
    assert audited(gradcheck, tmp_path, total, "--reduction", "factor=1")[0].code == 0
    assert audited(gradcheck, tmp_path, total, "--reduction", "factor=2")[0].code == 1
    result, arm = audited(gradcheck, tmp_path, total, "--reduction", "none")
    assert result.code == 0
    assert "reduction (--reduction none)" in arm["scope"]["not_checked"]


def test_a_coarser_wire_may_be_declared(gradcheck: Gradcheck, tmp_path: Path) -> None:
    """Rounded to bf16: beyond what f32 does, within what bf16 may."""

    def rounded(value: float) -> float:
        bits = struct.unpack("<I", struct.pack("<f", value))[0] + 0x8000
        return struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0]

    coarse = [{n: [rounded(v) for v in values] for n, values in mean().items()}] * 2
    assert audited(gradcheck, tmp_path, coarse)[0].code == 1
    assert audited(gradcheck, tmp_path, coarse, "--wire-dtype", "bf16")[0].code == 0


def test_equal_locals_prove_nothing(gradcheck: Gradcheck, tmp_path: Path) -> None:
    local = dumps(tmp_path / "local", [LOCALS[0], LOCALS[0]])
    same = dumps(tmp_path / "d", [LOCALS[0], LOCALS[0]])
    result, arm = compared(gradcheck, same, "--local", local)
    assert (result.code, codes(arm)) == (3, ["GC601"])


def test_a_local_that_is_missing_is_not_taken_for_zero(
    gradcheck: Gradcheck, tmp_path: Path
) -> None:
    """The reduced value would fit if it were: that would be a wrong pass."""
    half = mean() | {NAMES[0]: [f32(v / 2) for v in LOCALS[0][NAMES[0]]]}
    less = {name: values for name, values in LOCALS[1].items() if name != NAMES[0]}
    local = dumps(tmp_path / "local", [LOCALS[0], less])
    result, arm = compared(gradcheck, dumps(tmp_path / "d", [half, half]), "--local", local)
    assert (result.code, codes(arm)) == (3, ["GC603"])


def test_a_reduced_value_that_is_missing_is_a_gap(gradcheck: Gradcheck, tmp_path: Path) -> None:
    less = {name: values for name, values in mean().items() if name != NAMES[0]}
    result, arm = audited(gradcheck, tmp_path, [less, less])
    assert (result.code, codes(arm)) == (3, ["GC604"])
    assert arm["totals"]["unrecorded"] == 1


def test_where_non_finite_values_arose(gradcheck: Gradcheck, tmp_path: Path) -> None:
    made = changed(mean(), NAMES[0], 3, float("inf"))
    assert "GC208" in codes(audited(gradcheck, tmp_path, [made, made])[1])
    local = dumps(tmp_path / "l2", [LOCALS[0], changed(LOCALS[1], NAMES[0], 3, float("inf"))])
    arm = compared(gradcheck, tmp_path / "d", "--local", local)[1]
    (found,) = arm["findings"]
    assert (found["code"], found["ranks"]) == ("GC701", [1])


# --- another run


def test_a_reference_within_and_beyond_the_tolerance(gradcheck: Gradcheck, tmp_path: Path) -> None:
    folder = dumps(tmp_path / "d", [mean(), mean()])
    near = {n: [f32(v * (1 + 2**-23)) for v in values] for n, values in mean().items()}
    reference = dump(tmp_path / "ref.safetensors", near)

    def ends(*more: str) -> tuple[int, list[str]]:
        result, arm = compared(gradcheck, folder, "--reference", reference, *more)
        return result.code, codes(arm)

    assert ends() == (1, ["GC105"])
    assert ends("--tolerance", "exact") == (1, ["GC105"])
    assert ends("--tolerance", "ulp=2") == (0, [])
    assert ends("--tolerance", "ulp=0") == (1, ["GC105"])
    assert ends("--tolerance", "norm=2e-7") == (0, [])
    assert ends("--tolerance", "norm=1e-8") == (1, ["GC105"])


def test_one_dump_and_its_reference(gradcheck: Gradcheck, tmp_path: Path) -> None:
    new = dump(tmp_path / "new.safetensors", mean())
    old = dump(tmp_path / "old.safetensors", mean())
    result, arm = compared(gradcheck, new, "--reference", old)
    assert (result.code, arm["outcome"]) == (0, "consistent")
    assert arm["headline"] == "equals the reference bit for bit"
    other = dump(tmp_path / "other.safetensors", changed(mean(), NAMES[0], 0, 5.0))
    result, arm = compared(gradcheck, new, "--reference", other)
    assert (result.code, arm["totals"]["wrong"]) == (1, 1)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_tolerance_forgives_no_nan(gradcheck: Gradcheck, tmp_path: Path, value: float) -> None:
    new = dump(tmp_path / "new.safetensors", mean())
    old = dump(tmp_path / "old.safetensors", changed(mean(), NAMES[0], 0, value))
    for tolerance in ("norm=1", "ulp=18446744073709551615"):
        arguments = ("--reference", old, "--tolerance", tolerance)
        assert "GC105" in codes(compared(gradcheck, new, *arguments)[1])


def test_integers_that_differ_have_no_distance(gradcheck: Gradcheck, tmp_path: Path) -> None:
    new = safetensors(tmp_path / "new.safetensors", w=("I64", [2], [1, 2]))
    old = safetensors(tmp_path / "old.safetensors", w=("I64", [2], [1, 3]))
    result, arm = compared(gradcheck, new, "--reference", old, "--tolerance", "ulp=4")
    assert (result.code, codes(arm)) == (1, ["GC105"])
    assert "i64 differs, and has no distance" in arm["headline"]


def test_norms_of_tiny_numbers_are_none_of_zero(gradcheck: Gradcheck, tmp_path: Path) -> None:
    new = safetensors(tmp_path / "new.safetensors", w=("F64", [2], [1e-170, 2e-170]))
    old = safetensors(tmp_path / "old.safetensors", w=("F64", [2], [-9e-170, 5e-170]))
    arguments = ("--reference", old, "--tolerance", "norm=0")
    assert codes(compared(gradcheck, new, *arguments)[1]) == ["GC105"]


def test_what_only_one_of_the_runs_holds(gradcheck: Gradcheck, tmp_path: Path) -> None:
    new = dump(tmp_path / "new.safetensors", mean())
    less = {name: values for name, values in mean().items() if name != NAMES[0]}
    old = dump(tmp_path / "old.safetensors", less)
    assert codes(compared(gradcheck, new, "--reference", old)[1]) == ["GC105"]
    assert codes(compared(gradcheck, old, "--reference", new)[1]) == ["GC105"]


def test_a_norm_may_be_asked_across_types(gradcheck: Gradcheck, tmp_path: Path) -> None:
    new = dump(tmp_path / "new.safetensors", mean(), "BF16")
    old = dump(tmp_path / "old.safetensors", mean(), "F32")
    within = ("--reference", old, "--tolerance", "norm=0.01")
    assert compared(gradcheck, new, *within)[0].code == 0
    beyond = ("--reference", old, "--tolerance", "norm=1e-5")
    assert compared(gradcheck, new, *beyond)[0].code == 1
    assert compared(gradcheck, new, "--reference", old, "--tolerance", "ulp=9")[0].code == 1


# --- which file is whose


def test_ranks_count_as_people_do(gradcheck: Gradcheck, tmp_path: Path) -> None:
    for rank in range(12):
        dump(tmp_path / "d" / f"rank{rank}.safetensors", mean())
    by_folder = compared(gradcheck, tmp_path / "d")[1]
    by_pattern = compared(gradcheck, tmp_path / "d" / "rank*.safetensors")[1]
    by_shell = compared(gradcheck, *sorted((tmp_path / "d").iterdir(), key=str))[1]
    for arm in (by_folder, by_pattern, by_shell):
        names = [Path(file["path"]).stem for file in arm["dumps"][0]["files"]]
        assert names == [f"rank{rank}" for rank in range(12)]


def shards(folder: Path, tensors: Tensors) -> None:
    for part in range(2):
        names = NAMES[part * 4 : part * 4 + 4]
        path = folder / f"model-{part + 1:05}-of-00002.safetensors"
        dump(path, {name: tensors[name] for name in names})


def test_a_folder_a_rank_holds_its_shards(gradcheck: Gradcheck, tmp_path: Path) -> None:
    for rank in range(2):
        shards(tmp_path / "d" / f"rank{rank}", LOCALS[rank])
    for words in (
        [tmp_path / "d"],
        [tmp_path / "d" / "rank0", tmp_path / "d" / "rank1"],
        [tmp_path / "d" / "rank*" / "*.safetensors"],
    ):
        arm = compared(gradcheck, *words)[1]
        assert (arm["world_size"], arm["totals"]["differed"]) == (2, 8)
        assert [file["rank"] for file in arm["dumps"][0]["files"]] == [0, 0, 1, 1]


def test_npz_and_npy_are_read_too(gradcheck: Gradcheck, tmp_path: Path) -> None:
    values = mean()[NAMES[0]]
    array = npy_bytes(values, (ELEMENTS,))
    files = [npz(tmp_path / f"rank{rank}.npz", w=array) for rank in range(2)]
    assert compared(gradcheck, *files)[0].code == 0
    for rank in range(2):
        (tmp_path / f"rank{rank}.npy").write_bytes(npy_bytes(values, (ELEMENTS,)))
    plain = [tmp_path / f"rank{rank}.npy" for rank in range(2)]
    assert compared(gradcheck, *plain)[0].code == 0
    (tmp_path / "rank1.npy").write_bytes(npy_bytes(values[::-1], (ELEMENTS,)))
    assert compared(gradcheck, *plain)[0].code == 1


def test_large_unpacked_arrays_keep_their_elements(gradcheck: Gradcheck, tmp_path: Path) -> None:
    """Pages of files may be dropped and come again; those of unpacked members would be lost."""
    count = 200_000
    files = []
    for rank in range(2):
        values = [1.5] * count
        values[-1] += rank
        files.append(npz(tmp_path / f"rank{rank}.npz", w=npy_bytes(values, (count,))))
    result, arm = compared(gradcheck, *files)
    assert (result.code, arm["totals"]["max_abs"]) == (1, 1)
    assert arm["dumps"][0]["differing_elements"] == 1


@pytest.mark.parametrize("form", ["console", "json", "markdown", "junit"])
def test_every_report_names_what_differs(gradcheck: Gradcheck, tmp_path: Path, form: str) -> None:
    folder = dumps(tmp_path / "d", [mean(), changed(mean(), NAMES[6], 0, 5.0)])
    out = gradcheck("compare", folder, "--format", form).out
    assert NAMES[6] in out
    assert "GC101" in out


def test_the_same_files_give_the_same_bytes(gradcheck: Gradcheck, tmp_path: Path) -> None:
    folder = dumps(tmp_path / "d", LOCALS[:2])
    runs = [
        gradcheck("compare", folder, "--format", "json", SOURCE_DATE_EPOCH="1").out
        for _ in range(2)
    ]
    assert runs[0] == runs[1]


def test_names_may_be_as_odd_as_they_like(gradcheck: Gradcheck, tmp_path: Path) -> None:
    odd = {"a/b <c>\n": [1.0], "ü|*": [2.0], "": [3.0]}
    other = odd | {"": [4.0]}
    files = [tmp_path / "a b.safetensors", tmp_path / "c'd.safetensors"]
    for path, tensors in zip(files, (odd, other), strict=True):
        safetensors(path, **{k: ("F32", [1], v) for k, v in tensors.items()})
    result, arm = compared(gradcheck, *files)
    assert (result.code, arm["totals"]["differed"], arm["totals"]["inventory"]) == (1, 1, 3)
    for form in ("console", "markdown", "junit"):
        assert gradcheck("compare", *files, "--format", form).code == 1


def test_a_report_of_a_comparison_is_shown_again(gradcheck: Gradcheck, tmp_path: Path) -> None:
    folder = dumps(tmp_path / "d", LOCALS[:2])
    saved = tmp_path / "r.json"
    first = gradcheck("compare", folder, "--report", f"json={saved}", SOURCE_DATE_EPOCH="1")
    again = gradcheck("report", saved)
    assert again.out == first.out
    os.unlink(saved)
