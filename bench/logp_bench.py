#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processor time of `gradcheck logp` on 10 M tokens, as a ratio to sha256sum of the same file.

Exit status 1 when a target is missed, 3 when a program does not end with 0.
"""

import argparse
import array
import json
import os
import random
import statistics
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROWS, TOKENS = 10_000, 1_000
PATTERN = 1_000_000  # values made; the file repeats them


class RunFailedError(Exception):
    """The program ended otherwise than with 0, so its time means nothing."""


def write_dump(path: Path) -> None:
    source = random.Random(1)
    old = [-source.expovariate(0.5) - 0.01 for _ in range(PATTERN)]
    new = [min(0.0, value + source.gauss(0, 0.015)) for value in old]
    size = 4 * ROWS * TOKENS
    header = {
        name: {"dtype": "F32", "shape": [ROWS, TOKENS], "data_offsets": [at, at + size]}
        for name, at in (("old", 0), ("new", size))
    }
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in (old, new):
            packed = array.array("f", values).tobytes()
            for _ in range(ROWS * TOKENS // PATTERN):
                file.write(packed)


def measured(command: list[str]) -> tuple[float, float]:
    """Processor seconds and peak MiB of one run."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RunFailedError(f"exit {process.returncode}: {' '.join(command)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def row(name: str, value: str, met: bool) -> bool:
    print(f"{name:44}{value:>10}{'yes' if met else 'no':>6}")
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description="gradcheck logp against sha256sum.")
    parser.add_argument("gradcheck", type=Path, help="for example build/release/gradcheck")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--target", type=float, default=6.0, metavar="TIMES")
    parser.add_argument("--memory", type=float, default=500.0, metavar="MIB")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "dump.safetensors"
        write_dump(dump)
        try:
            ours = [
                measured([str(arguments.gradcheck), "logp", str(dump)])
                for _ in range(arguments.runs)
            ]
            yardstick = [measured(["sha256sum", str(dump)])[0] for _ in range(arguments.runs)]
        except (RunFailedError, OSError) as error:
            print(f"logp_bench.py: {error}", file=sys.stderr)
            return 3
    seconds = statistics.median(time for time, _ in ours)
    ratio = seconds / statistics.median(yardstick)
    memory = max(peak for _, peak in ours)
    fast = row(
        f"logp, 10 M tokens <= {arguments.target:g} x sha256sum",
        f"{ratio:.2f}",
        ratio <= arguments.target,
    )
    small = row(
        f"logp, 10 M tokens <= {arguments.memory:g} MiB",
        f"{memory:.0f}",
        memory <= arguments.memory,
    )
    print(f"  {seconds:.2f} s of processor time")
    return 0 if fast and small else 1


if __name__ == "__main__":
    sys.exit(main())
