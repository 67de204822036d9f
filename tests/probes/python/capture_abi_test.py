# SPDX-License-Identifier: Apache-2.0
"""libgradcheck_capture as a job meets it: loaded by ctypes, next to torch, without our build."""

import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
HEADER = ROOT / "probes/python/capture/capture.h"
LIBC = {"linux-vdso", "libm", "libc", "ld-linux-x86-64", "ld-linux-aarch64"}

F32, REDUCED, GRAD = 1, 2, 1


class View(ctypes.Structure):
    """gradcheck_view."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
        ("unreadable", ctypes.c_int32),
    )


@pytest.fixture(scope="module")
def path() -> Path:
    library = Path(os.environ["GRADCHECK_BIN"]).parent / "libgradcheck_capture.so"
    assert library.exists(), "run scripts/test"
    return library


def output(*command: str | Path) -> str:
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=True
    ).stdout


def test_a_job_needs_nothing_but_libc(path: Path) -> None:
    needed = {
        line.split()[0].split("/")[-1].split(".so")[0] for line in output("ldd", path).splitlines()
    }
    assert "libc" in needed
    assert needed <= LIBC


def test_exactly_the_functions_of_the_header_are_exported(path: Path) -> None:
    declared = set(re.findall(r"\b(gradcheck_\w+)\(", HEADER.read_text()))
    symbols = output("nm", "--dynamic", "--defined-only", path).splitlines()
    assert len(declared) > 15
    assert {line.split()[-1] for line in symbols} == declared


def test_the_header_is_plain_c(tmp_path: Path) -> None:
    source = tmp_path / "header.c"
    source.write_text(
        f'#include "{HEADER}"\nint main(void) {{ return sizeof(gradcheck_view) == 40 ? 0 : 1; }}\n'
    )
    program_path = tmp_path / "header"
    output("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-o", program_path, source)
    output(program_path)


def test_records_through_ctypes(path: Path, tmp_path: Path) -> None:
    library = ctypes.CDLL(str(path))
    library.gradcheck_open_file.restype = ctypes.c_void_p
    library.gradcheck_error.restype = ctypes.c_char_p
    assert library.gradcheck_abi() == 2
    lines = tmp_path / "lines"
    handle = ctypes.c_void_p(library.gradcheck_open_file(str(lines).encode()))
    slot = library.gradcheck_slot(handle, b"Net", b"weight", None)
    values = (ctypes.c_float * 6)(1, 2, 3, 4, 5, 6)
    sizes, strides = (ctypes.c_int64 * 2)(3, 2), (ctypes.c_int64 * 2)(1, 3)
    view = View(ctypes.cast(values, ctypes.c_void_p), sizes, strides, 2, F32, 0)
    step, micro = ctypes.c_int64(1 << 40), ctypes.c_int64(0)
    record = (handle, slot, step, micro, REDUCED, GRAD, ctypes.byref(view), -1, 0)
    assert library.gradcheck_record(*record) == 0
    assert library.gradcheck_record(*record) == -1
    assert b"recorded at this moment already" in library.gradcheck_error(handle)
    assert library.gradcheck_bye(handle, 0) == 0
    library.gradcheck_close(handle)
    first, bye = lines.read_text().splitlines()
    assert '"seq":0,"step":1099511627776,' in first
    assert '"shape":[3,2],"dtype":"f32"' in first
    assert '"n":6,"nan":0,"inf":0,"zeros":0,"l1":21,' in first
    assert bye == '{"type":"bye","seq":1,"status":0,"lines":1}'


# Two C++ libraries in one process: ours must catch what it throws all the same.
@pytest.mark.parametrize("order", [("torch", "ours"), ("ours", "torch")])
def test_exceptions_stay_inside_next_to_torch(path: Path, order: tuple[str, str]) -> None:
    pytest.importorskip("torch")
    load = {"torch": "import torch", "ours": f"lib = ctypes.CDLL({str(path)!r})"}
    lines = [
        "import ctypes",
        *(load[name] for name in order),
        "lib.gradcheck_error.restype = ctypes.c_char_p",
        "lib.gradcheck_open_socket.restype = ctypes.c_void_p",
        "assert not lib.gradcheck_open_socket(b'/no/such/socket', ctypes.c_double(1))",
        "print(lib.gradcheck_error(None).decode())",
        "assert torch.ones(3).sum().item() == 3",
    ]
    assert "cannot connect to /no/such/socket" in output(sys.executable, "-c", "\n".join(lines))
