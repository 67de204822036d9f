#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times whole gradcheck processes, start to exit, and prints the median against a target.

Exit status 1 when the target is missed, 3 when gradcheck itself does not end with 0.
"""

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path


class RunFailed(Exception):
    """gradcheck ended otherwise than with 0, so its time means nothing."""


def timed_run(command: list[str]) -> float:
    """Wall seconds."""
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - start
    if done.returncode != 0:
        raise RunFailed(f"exit {done.returncode}: {' '.join(command)}\n{done.stderr[-2000:]}")
    return wall


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Median wall time of one scenario.")
    parser.add_argument("gradcheck", type=Path, help="for example build/release/gradcheck")
    parser.add_argument("--scenario", default="kto_liger_ddp")
    parser.add_argument("--runs", type=int, default=5, help="after one that warms the page cache")
    parser.add_argument("--target", type=float, default=2.0, metavar="SECONDS")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    command = [str(arguments.gradcheck), "--scenario", arguments.scenario]
    try:
        timed_run(command)
        walls = [timed_run(command) for _ in range(arguments.runs)]
    except (RunFailed, OSError) as error:
        print(f"scenario_bench.py: {error}", file=sys.stderr)
        return 3
    median = statistics.median(walls)
    met = median <= arguments.target
    row = f"{arguments.scenario} <= {arguments.target:g} s wall"
    print(f"{row:44}{median:10.2f}{'yes' if met else 'no':>6}")
    print(f"  {arguments.runs} runs, {min(walls):.2f} to {max(walls):.2f} s")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
