# SPDX-License-Identifier: Apache-2.0
"""gradcheck logp and files that are not what they claim: one sentence on stderr, exit 2, nothing on
stdout."""

import io
import json
import struct
import zipfile
from pathlib import Path

import pytest
from conftest import Gradcheck
from test_logp import (
    PACKED,
    ROWS,
    TOKENS,
    log_probs,
    npy_bytes,
    npz,
    raw_safetensors,
    safetensors,
)


def refused(gradcheck: Gradcheck, *arguments: str | Path) -> str:
    result = gradcheck("logp", *arguments)
    assert result.code == 2, result.out + result.err
    assert result.out == ""
    assert len(result.err.splitlines()) == 1
    return result.err


FLOATS = PACKED["F32"]([-1.0, -2.0])
ENTRY = '"dtype":"F32","shape":[1,2],"data_offsets":'
HOSTILE = {
    "empty": (b"", "shorter than its header"),
    "header of 4 GB": (struct.pack("<Q", 4 << 30) + b"{}", "header is too long"),
    "header of 2^64": (struct.pack("<Q", (1 << 64) - 1) + b"{}", "header is too long"),
    "not JSON": (struct.pack("<Q", 2) + b"{{", "header is not JSON"),
}
HEADERS = {
    "truncated": (f'{{"old":{{{ENTRY}[0,8]}},"new":{{{ENTRY}[8,16]}}}}', "'new': offsets outside"),
    "overlap": (f'{{"old":{{{ENTRY}[0,8]}},"new":{{{ENTRY}[0,8]}}}}', "overlap"),
    "upside down": (f'{{"old":{{{ENTRY}[8,0]}}}}', "'old': offsets outside the file"),
    "overflow": (
        '{"old":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}}',
        "'old': header: shape is too large",
    ),
    "shape": (
        '{"old":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}',
        "'old': size and shape disagree",
    ),
    "twice": (f'{{"old":{{{ENTRY}[0,4]}},"old":{{{ENTRY}[4,8]}}}}', "'old': size and shape"),
    "no pair": (f'{{"a":{{{ENTRY}[0,8]}}}}', "no pair of old and new log-probs"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_damaged_safetensors_file(gradcheck: Gradcheck, tmp_path: Path, case: str) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(HOSTILE[case][0])
    error = refused(gradcheck, path)
    assert str(path) in error
    assert HOSTILE[case][1] in error


@pytest.mark.parametrize("case", HEADERS)
def test_a_header_that_lies(gradcheck: Gradcheck, tmp_path: Path, case: str) -> None:
    header, why = HEADERS[case]
    path = raw_safetensors(tmp_path / "a.safetensors", header.encode(), FLOATS)
    error = refused(gradcheck, path)
    assert str(path) in error
    assert why in error


NPY = npy_bytes([-1.0, -2.0], (1, 2))
DAMAGED_NPY = {
    "empty": (b"", "not a .npy file"),
    "magic": (b"\x93NUMPX" + NPY[6:], "not a .npy file"),
    "version": (NPY[:6] + b"\x09\x00" + NPY[8:], "version 9"),
    "header": (NPY[:8] + b"\xff\xff" + NPY[10:], "header of 65535 bytes"),
    "short": (NPY[:-1], "ask for 8 bytes, 7 follow"),
    "long": (NPY + b"x", "ask for 8 bytes, 9 follow"),
    "big-endian": (NPY.replace(b"<f4", b">f4"), "'>f4'"),
    "objects": (NPY.replace(b"'<f4'", b"'|O' "), "'|O'"),
    "Fortran": (NPY.replace(b"False", b"True "), "Fortran order"),
    "negative": (NPY.replace(b"(1, 2)", b"(1,-2)"), "not a list of counts"),
    "overflow": (
        npy_bytes([-1.0, -2.0], (1 << 62, 16)),
        "shape is too large",
    ),
    "not a dictionary": (NPY.replace(b"{'descr'", b"['descr'"), "'{' expected"),
    "unknown key": (NPY.replace(b"fortran_order", b"fortran_odder"), "unknown or occurs twice"),
}


@pytest.mark.parametrize("case", DAMAGED_NPY)
def test_a_damaged_npy_file(gradcheck: Gradcheck, tmp_path: Path, case: str) -> None:
    data, why = DAMAGED_NPY[case]
    path = tmp_path / "old.npy"
    path.write_bytes(data)
    good = tmp_path / "new.npy"
    good.write_bytes(NPY)
    for order in (("--old", path, "--new", good), ("--old", good, "--new", path)):
        error = refused(gradcheck, *order)
        assert str(path) in error
        assert why in error
    packed = npz(tmp_path / "a.npz", old=data, new=NPY)
    assert "member 'old'" in refused(gradcheck, packed)


def test_a_damaged_npz_file(gradcheck: Gradcheck, tmp_path: Path) -> None:
    values = npy_bytes(log_probs(), (ROWS, TOKENS))
    whole = npz(tmp_path / "a.npz", old=values, new=values).read_bytes()
    path = tmp_path / "b.npz"
    for cut in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        assert str(path) in refused(gradcheck, path)
    flipped = bytearray(whole)
    flipped[len(whole) // 4] ^= 0xFF
    path.write_bytes(bytes(flipped))
    assert "member" in refused(gradcheck, path)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("old.npy", NPY)
        archive.writestr("old.npy", NPY)
    path.write_bytes(buffer.getvalue())
    assert str(path) in refused(gradcheck, path)


GOOD = '{"old":[-1.0,-2.0],"new":[-1.0,-2.0]}\n'
DAMAGED_LINES = {
    "NaN": (GOOD + '{"old":[NaN],"new":[-1.0]}\n', "row 1 (line 2, byte 38): not JSON"),
    "cut": (GOOD + '{"old":[-1.0', "row 1 (line 2, byte 38): not JSON"),
    "list": ("[1]\n", "row 0 (line 1, byte 0): not an object"),
    "twice": ('{"old":[-1.0],"old":[-1.0],"new":[-1.0]}\n', "row 0"),
    "missing": (GOOD + '{"old":[-1.0]}\n', "row 1 (line 2, byte 38): 'new' is missing"),
    "late": (GOOD + '{"old":[-1.0],"new":[-1.0],"mask":[1]}\n', "missing in earlier rows"),
    "lengths": (GOOD + '{"old":[-1.0],"new":[-1.0,-1.0]}\n', "row 1: 1 tokens in"),
    "text": ('{"old":[-1.0,"x"],"new":[-1.0,-1.0]}\n', "'old' has no number at 1"),
    "mask": ('{"old":[-1.0],"new":[-1.0],"mask":[2]}\n', "row 0 holds 2; a mask holds 0 and 1"),
    "null mask": ('{"old":[-1.0],"new":[-1.0],"mask":[null]}\n', "a mask holds 0 and 1"),
    "empty mask": ('{"old":[-1.0],"new":[-1.0],"mask":[0]}\n', "the mask selects no token"),
    "empty mask, then none": (
        '{"old":[-1.0],"new":[-1.0],"mask":[]}\n{"old":[-1.0],"new":[-1.0]}\n',
        "row 1: 'mask' is missing",
    ),
    "no mask, then an empty one": (
        '{"old":[-1.0],"new":[-1.0]}\n{"old":[-1.0],"new":[-1.0],"mask":[]}\n',
        "row 0: 'mask' is missing",
    ),
    "a mask of words": (
        '{"old":[],"new":[],"mask":[]}\n{"old":[-1.0],"new":[-1.0],"mask":["a"]}\n',
        "row 1: 'mask' is missing, or no list of numbers",
    ),
    "NaN in place of a number": ('{"old":[NaN],"new":[-1.0]}\n', "nor are NaN, Infinity"),
    "nothing": ("", "no pair of old and new"),
}


@pytest.mark.parametrize("case", DAMAGED_LINES)
def test_damaged_json_lines(gradcheck: Gradcheck, tmp_path: Path, case: str) -> None:
    text, why = DAMAGED_LINES[case]
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    error = refused(gradcheck, path)
    assert str(path) in error
    assert why in error


def test_arrays_that_do_not_fit_each_other(gradcheck: Gradcheck, tmp_path: Path) -> None:
    old, new = tmp_path / "old.npy", tmp_path / "new.npy"
    old.write_bytes(npy_bytes([-1.0, -2.0], (1, 2)))
    new.write_bytes(npy_bytes([-1.0, -2.0], (2, 1)))
    assert "has 1 rows" in refused(gradcheck, "--old", old, "--new", new)
    new.write_bytes(npy_bytes([-1.0, -2.0, -1.0], (1, 3)))
    assert "row 0: 2 tokens" in refused(gradcheck, "--old", old, "--new", new)
    new.write_bytes(npy_bytes([-1.0, -2.0], (1, 1, 2)))
    assert "3 dimensions" in refused(gradcheck, "--old", old, "--new", new)


def test_usage(gradcheck: Gradcheck, tmp_path: Path) -> None:
    old = tmp_path / "old.npy"
    old.write_bytes(NPY)
    assert "give --old and --new" in refused(gradcheck)
    assert "give --old and --new" in refused(gradcheck, "--old", old)
    assert "--new is given 1 times" in refused(gradcheck, "--old", old, "--old", old, "--new", old)
    assert "safetensors.torch.save_file" in refused(gradcheck, tmp_path / "a.pt")
    assert ".safetensors, .npz, .npy or .jsonl" in refused(gradcheck, tmp_path / "a.csv")
    both = ("--old", old, "--new", old)
    assert "top_p=P" in refused(gradcheck, *both, "--sampling", "beam=4")
    assert "same_stack" in refused(gradcheck, *both, "--regime", "r1")
    assert "a count" in refused(gradcheck, *both, "--lag", "-1")
    assert "a number" in refused(gradcheck, *both, "--temperature", "nan")


def test_rows_without_tokens_take_no_memory(gradcheck: Gradcheck, tmp_path: Path) -> None:
    """A file of 100 bytes may claim two billion of them, or more rows than there are numbers."""
    many = {"dtype": "F32", "shape": [2_000_000_000, 0], "data_offsets": [0, 0]}
    header = json.dumps({"old": many, "new": many}).encode()
    assert "empty" in refused(gradcheck, raw_safetensors(tmp_path / "a.safetensors", header, b""))
    more = {"dtype": "U8", "shape": [2**64 - 1, 0], "data_offsets": [0, 0]}
    header = json.dumps({"old": many, "new": many, "mask": more}).encode()
    text = refused(gradcheck, raw_safetensors(tmp_path / "b.safetensors", header, b""))
    assert "shape is too large" in text


def test_token_ids_are_whole_numbers(gradcheck: Gradcheck, tmp_path: Path) -> None:
    row = {"inference_logprobs": [-1.0], "trainer_logprobs": [-1.0], "loss_mask": [1]}
    path = tmp_path / "a.jsonl"
    for wrong in (None, 0.5, 1e300):
        path.write_text(json.dumps({**row, "token_ids": [wrong]}) + "\n")
        assert "no token id" in refused(gradcheck, path)


def test_micro_batches_that_are_none(gradcheck: Gradcheck, tmp_path: Path) -> None:
    values = log_probs()
    shape = [ROWS, TOKENS]
    for numbers in ([0.5] * ROWS * TOKENS, [float(i % 2) for i in range(ROWS * TOKENS)]):
        path = safetensors(
            tmp_path / "a.safetensors",
            old=("F32", shape, values),
            new=("F32", shape, values),
            micro_batch=("F32", shape, numbers),
        )
        assert "names no micro-batch of its own" in refused(gradcheck, path)
