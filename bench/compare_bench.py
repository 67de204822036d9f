#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time of `gradcheck compare` on two equal files of 2 GiB in the page cache, as a ratio to cmp.

The two run in turn, so that a noisy neighbour hits both; the ratio is that of their medians. Memory
is anonymous memory: pages of the files are the page cache's and go when others need them. Exit
status 1 when a target is missed, 3 when a program does not end with 0.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TENSORS = 128
PATTERN = 16 << 20  # bytes made; the file repeats them


class RunFailedError(Exception):
    """The program ended otherwise than with 0, so its time means nothing."""


def finite_floats() -> bytes:
    """Random f32 numbers from 0.5 to 4, either sign."""
    words = bytearray(random.Random(1).randbytes(PATTERN))
    words[3::4] = bytes((byte & 0x80) | (0x3F + (byte & 1)) for byte in words[3::4])
    return bytes(words)


def write_dump(path: Path, size: int) -> None:
    part = size // TENSORS
    header = {
        f"layers.{i}": {
            "dtype": "F32",
            "shape": [part // 4],
            "data_offsets": [i * part, (i + 1) * part],
        }
        for i in range(TENSORS)
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pattern = finite_floats()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for at in range(0, size, PATTERN):
            file.write(pattern[: min(PATTERN, size - at)])


def anonymous_peak(pid: int) -> int:
    """KiB; 0 once the process has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))
    except (OSError, StopIteration):
        return 0


def timed(command: list[str], *, watch: bool = False) -> tuple[float, float]:
    """Seconds by the clock, and MiB of anonymous memory at most where it is watched."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak = 0
    while watch and process.poll() is None:
        peak = max(peak, anonymous_peak(process.pid))
        time.sleep(0.002)
    if process.wait() != 0:
        raise RunFailedError(f"exit {process.returncode}: {' '.join(command)}")
    return time.monotonic() - start, peak / 1024


def row(name: str, value: str, met: bool) -> bool:
    print(f"{name:44}{value:>10}{'yes' if met else 'no':>6}")
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description="gradcheck compare against cmp.")
    parser.add_argument("gradcheck", type=Path, help="for example build/release/gradcheck")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--size", type=int, default=2 << 30, metavar="BYTES")
    parser.add_argument("--target", type=float, default=0.8, metavar="TIMES")
    parser.add_argument("--memory", type=float, default=64.0, metavar="MIB")
    arguments = parser.parse_args()
    size = arguments.size // TENSORS // 4 * TENSORS * 4
    with tempfile.TemporaryDirectory(dir=os.environ.get("GRADCHECK_BENCH_DIR")) as folder:
        files = [f"{folder}/rank{rank}.safetensors" for rank in range(2)]
        write_dump(Path(files[0]), size)
        shutil.copyfile(files[0], files[1])
        ours, theirs = [], []
        try:
            timed(["cmp", *files])  # fills the page cache
            for _ in range(arguments.runs):
                theirs.append(timed(["cmp", *files])[0])
                ours.append(timed([str(arguments.gradcheck), "compare", *files])[0])
            _, memory = timed([str(arguments.gradcheck), "compare", *files], watch=True)
        except (RunFailedError, OSError) as error:
            print(f"compare_bench.py: {error}", file=sys.stderr)
            return 3
    ratio = statistics.median(theirs) / statistics.median(ours)
    fast = row(
        f"compare >= {arguments.target:g} x cmp's speed", f"{ratio:.2f}", ratio >= arguments.target
    )
    small = row(
        f"compare <= {arguments.memory:g} MiB, files apart",
        f"{memory:.0f}",
        memory <= arguments.memory,
    )
    print(
        f"  {statistics.median(ours):.2f} s of {min(ours):.2f} to {max(ours):.2f}; cmp "
        f"{statistics.median(theirs):.2f} s of {min(theirs):.2f} to {max(theirs):.2f}"
    )
    return 0 if fast and small else 1


if __name__ == "__main__":
    sys.exit(main())
