# SPDX-License-Identifier: Apache-2.0
"""gradcheck compare and what it refuses: one sentence on stderr, exit 2, nothing on stdout."""

import json
import os
import pickle
import struct
from pathlib import Path

import pytest
from conftest import Gradcheck
from test_compare import LOCALS, NAMES, dump, dumps, mean
from test_logp import raw_safetensors, safetensors


def refused(gradcheck: Gradcheck, *arguments: str | Path) -> str:
    result = gradcheck("compare", *arguments)
    assert result.code == 2, result.out + result.err
    assert result.out == ""
    assert len(result.err.splitlines()) == 1
    return result.err


ENTRY = '"dtype":"F32","shape":[2],"data_offsets":'
EIGHT = struct.pack("<2f", 1, 2)
FILES = {
    "empty": (b"", "shorter than its header"),
    "header of 4 GB": (struct.pack("<Q", 4 << 30) + b"{}", "header is too long: byte 0"),
    "header of 2^64": (struct.pack("<Q", (1 << 64) - 1) + b"{}", "header is too long"),
    "header cut": (struct.pack("<Q", 50) + b'{"w":', "header is too long"),
    "not JSON": (struct.pack("<Q", 2) + b"{{", "header is not JSON"),
    "a list": (struct.pack("<Q", 2) + b"[]", "header is not JSON"),
}
HEADERS = {
    "truncated": (f'{{"w":{{{ENTRY}[0,16]}}}}', EIGHT, "'w': offsets outside the file: bytes 0 to"),
    "cut in a tensor": (f'{{"w":{{{ENTRY}[0,8]}}}}', EIGHT[:7], "'w': offsets outside"),
    "a field twice": (
        '{"w":{"dtype":"F32","dtype":"I32","shape":[2],"data_offsets":[0,8]}}',
        EIGHT,
        "'w': header: 'dtype' occurs twice",
    ),
    "offsets twice": (
        '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"data_offsets":[0,4]}}',
        EIGHT,
        "'data_offsets' occurs twice",
    ),
    "metadata is a number": (
        f'{{"__metadata__":5,"w":{{{ENTRY}[0,8]}}}}',
        EIGHT,
        "__metadata__ is no object",
    ),
    "overlap": (f'{{"a":{{{ENTRY}[0,8]}},"b":{{{ENTRY}[0,8]}}}}', EIGHT, "overlap at byte"),
    "a gap": (
        f'{{"a":{{{ENTRY}[0,8]}},"b":{{{ENTRY}[12,20]}}}}',
        EIGHT + b"1234" + EIGHT,
        "belong to no tensor",
    ),
    "more than it says": (f'{{"a":{{{ENTRY}[0,8]}}}}', EIGHT + b"x", "belong to no tensor"),
    "upside down": (f'{{"w":{{{ENTRY}[8,0]}}}}', EIGHT, "'w': offsets outside the file"),
    "beyond 64 bits": (
        f'{{"w":{{{ENTRY}[0,18446744073709551616]}}}}',
        EIGHT,
        "header",
    ),
    "shape overflows": (
        '{"w":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}}',
        EIGHT,
        "'w': header: shape is too large",
    ),
    "shape and size": (
        '{"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}',
        EIGHT,
        "'w': size and shape disagree",
    ),
    "type and size": (
        '{"w":{"dtype":"F64","shape":[2],"data_offsets":[0,8]}}',
        EIGHT,
        "'w': size and shape disagree",
    ),
    "unknown type": (
        '{"w":{"dtype":"F4","shape":[2],"data_offsets":[0,8]}}',
        EIGHT,
        "'w': header: unknown dtype F4",
    ),
    "negative": (
        '{"w":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}',
        EIGHT,
        "'w': header: not a list of counts",
    ),
    "twice": (
        f'{{"w":{{{ENTRY}[0,8]}},"w":{{{ENTRY}[8,16]}}}}',
        EIGHT + EIGHT,
        "a key occurs twice",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_a_damaged_file(gradcheck: Gradcheck, tmp_path: Path, case: str) -> None:
    good = dump(tmp_path / "good.safetensors", mean())
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(FILES[case][0])
    for files in ((good, bad), (bad, good)):
        error = refused(gradcheck, *files)
        assert str(bad) in error
        assert FILES[case][1] in error


@pytest.mark.parametrize("case", HEADERS)
def test_a_header_that_lies(gradcheck: Gradcheck, tmp_path: Path, case: str) -> None:
    header, data, why = HEADERS[case]
    good = dump(tmp_path / "good.safetensors", mean())
    bad = raw_safetensors(tmp_path / "bad.safetensors", header.encode(), data)
    error = refused(gradcheck, good, bad)
    assert str(bad) in error
    assert why in error


@pytest.mark.parametrize("size", [1, 7, 8, 9, 40, 200, -1])
def test_a_dump_cut_anywhere(gradcheck: Gradcheck, tmp_path: Path, size: int) -> None:
    good = dump(tmp_path / "good.safetensors", mean())
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(good.read_bytes()[:size])
    assert str(bad) in refused(gradcheck, good, bad)


@pytest.mark.parametrize("name", ["rank1.pt", "rank1.pth", "pytorch_model.bin"])
def test_pytorch_files_are_told_how_to_be_saved(
    gradcheck: Gradcheck, tmp_path: Path, name: str
) -> None:
    good = dump(tmp_path / "good.safetensors", mean())
    path = tmp_path / name
    path.write_bytes(pickle.dumps({"w": [1.0]}))
    error = refused(gradcheck, good, path)
    assert str(path) in error
    assert "safetensors.torch.save_file" in error
    folder = tmp_path / "only"
    folder.mkdir()
    (folder / name).write_bytes(path.read_bytes())
    assert "safetensors.torch.save_file" in refused(gradcheck, folder)


def test_other_formats(gradcheck: Gradcheck, tmp_path: Path) -> None:
    good = dump(tmp_path / "good.safetensors", mean())
    for name in ("a.jsonl", "a.ndjson", "a.gguf", "a"):
        path = tmp_path / name
        path.write_text(json.dumps({"w": [1, 2]}) + "\n")
        assert str(path) in refused(gradcheck, good, path)


def test_a_file_is_not_compared_with_itself(gradcheck: Gradcheck, tmp_path: Path) -> None:
    path = dump(tmp_path / "a.safetensors", mean())
    other = dump(tmp_path / "b.safetensors", mean())
    link, hard = tmp_path / "c.safetensors", tmp_path / "d.safetensors"
    link.symlink_to(path)
    os.link(path, hard)
    for same in (path, tmp_path / "." / "a.safetensors", link, hard):
        assert "one file" in refused(gradcheck, path, same)
        assert "one file" in refused(gradcheck, path, other, "--reference", same)
    assert "one file" in refused(gradcheck, path, other, "--local", other, "--local", link)


def test_a_tensor_in_two_shards(gradcheck: Gradcheck, tmp_path: Path) -> None:
    for rank in range(2):
        for part in range(2):
            dump(tmp_path / "d" / f"rank{rank}" / f"part{part}.safetensors", {"w": [1.0]})
    assert "'w' stands in" in refused(gradcheck, tmp_path / "d")


@pytest.mark.parametrize("missing", [1, 2, 3])
def test_a_shard_that_is_missing(gradcheck: Gradcheck, tmp_path: Path, missing: int) -> None:
    for rank in range(2):
        for part in range(1, 4):
            path = tmp_path / "d" / f"rank{rank}" / f"m-{part:05}-of-00003.safetensors"
            dump(path, {f"w{part}": [1.0]})
    (tmp_path / "d" / "rank1" / f"m-{missing:05}-of-00003.safetensors").unlink()
    assert f"shard {missing} of 3" in refused(gradcheck, tmp_path / "d")


def test_folders_that_do_not_say_who_is_who(gradcheck: Gradcheck, tmp_path: Path) -> None:
    named = tmp_path / "named"
    dump(named / "grads.safetensors", mean())
    dump(named / "params.safetensors", mean())
    assert "which rank is whose" in refused(gradcheck, named)
    two = tmp_path / "two"
    for rank in range(2):
        for step in range(2):
            dump(two / f"rank{rank}-step{step}.safetensors", mean())
    assert "do not differ in one number alone" in refused(gradcheck, two)
    gap = tmp_path / "gap"
    for rank in (0, 1, 3):
        dump(gap / f"rank{rank}.safetensors", mean())
    assert "a file is missing" in refused(gradcheck, gap)
    mixed = dumps(tmp_path / "mixed", [mean(), mean()])
    dump(mixed / "notes" / "extra.safetensors", mean())
    assert gradcheck("compare", mixed).code == 0
    dump(mixed / "rank2" / "shard.safetensors", LOCALS[2])
    assert "rank2 is a folder named like a rank" in refused(gradcheck, mixed)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "there is no" in refused(gradcheck, empty)
    assert "is a file, other ranks are folders" in refused(
        gradcheck, gap, gap / "rank0.safetensors"
    )


def test_what_is_not_there(gradcheck: Gradcheck, tmp_path: Path) -> None:
    good = dump(tmp_path / "good.safetensors", mean())
    assert "No such file" in refused(gradcheck, good, tmp_path / "none.safetensors")
    assert "no file matches" in refused(gradcheck, tmp_path / "none*.safetensors")
    fifo = tmp_path / "pipe.safetensors"
    os.mkfifo(fifo)
    assert "not a file" in refused(gradcheck, good, fifo)


def test_names_that_cannot_be_looked_up(gradcheck: Gradcheck, tmp_path: Path) -> None:
    folder = dumps(tmp_path / "d", [mean(), mean()])
    good = folder / "rank0.safetensors"
    loop = folder / "rank2.safetensors"
    loop.symlink_to(loop.name)
    assert "rank2.safetensors" in refused(gradcheck, folder)
    assert "rank2.safetensors" in refused(gradcheck, good, loop)
    assert "rank2.safetensors" in refused(gradcheck, good, "--reference", loop)
    assert "too long" in refused(gradcheck, good, tmp_path / f"{'x' * 300}.safetensors")


def test_local_gradients_of_another_shape(gradcheck: Gradcheck, tmp_path: Path) -> None:
    """As many elements in another order would be summed all the same."""
    tensors = {"w": ("F32", [2, 2], [1.0, 2.0, 3.0, 4.0])}
    flat = {"w": ("F32", [4], [1.0, 2.0, 3.0, 4.0])}
    for rank in range(2):
        for name, arrays in (("d", tensors), ("local", flat)):
            (tmp_path / name).mkdir(exist_ok=True)
            safetensors(tmp_path / name / f"rank{rank}.safetensors", **arrays)
    error = refused(gradcheck, tmp_path / "d", "--local", tmp_path / "local")
    assert "tensor 'w' is [4], but [2, 2] in" in error


def test_names_that_have_nothing_in_common(gradcheck: Gradcheck, tmp_path: Path) -> None:
    folder = dumps(tmp_path / "d", [mean(), mean()])
    other = [{f"module.{n}": v for n, v in g.items()} for g in LOCALS[:2]]
    local = dumps(tmp_path / "local", other)
    error = refused(gradcheck, folder, "--local", local)
    assert "no tensor name in common" in error
    assert f"module.{NAMES[0]}" in error


def test_options_that_say_nothing(gradcheck: Gradcheck, tmp_path: Path) -> None:
    folder = dumps(tmp_path / "d", [mean(), mean()])
    local = dumps(tmp_path / "local", LOCALS[:2])
    reference = dump(tmp_path / "ref.safetensors", mean())
    assert "takes a dump a rank" in refused(gradcheck)
    assert "--reduction needs --local" in refused(gradcheck, folder, "--reduction", "sum")
    assert "--wire-dtype needs --local" in refused(gradcheck, folder, "--wire-dtype", "bf16")
    assert "--tolerance needs --reference" in refused(gradcheck, folder, "--tolerance", "ulp=1")
    for wrong in ("ulp", "ulp=-1", "ulp=1.5", "norm=2", "norm=nan", "norm=-1", "1e-3"):
        arguments = ("--reference", reference, "--tolerance", wrong)
        assert "ulp=N or norm=X" in refused(gradcheck, folder, *arguments)
    for wrong in ("average", "factor", "factor=0", "factor=nan", "factor=x", "lossy"):
        assert "factor=K" in refused(gradcheck, folder, "--local", local, "--reduction", wrong)
    one = local / "rank0.safetensors"
    assert "--local names 1" in refused(gradcheck, folder, "--local", one)
