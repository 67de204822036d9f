#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times whole gradcheck processes, start to exit, and prints the median against a target: one
scenario, every native scenario in one run, and one arm once the zygote is up.

Exit status 1 when a target is missed, 3 when gradcheck itself does not end with 0.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

ARM_SCENARIO = "kto_liger_ddp"  # 310 tensors; its second arm finds a zygote that is up
ARM_TARGET = 0.25
ALL_TARGET = 30.0


class RunFailed(Exception):
    """gradcheck ended otherwise than with 0, so its time means nothing."""


def timed_run(command: list[str]) -> tuple[float, str]:
    """Wall seconds, and what it printed."""
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - start
    if done.returncode != 0:
        raise RunFailed(f"exit {done.returncode}: {' '.join(command)}\n{done.stderr[-2000:]}")
    return wall, done.stdout


def row(text: str, seconds: list[float], target: float) -> bool:
    """Prints a median beside its target."""
    median = statistics.median(seconds)
    met = median <= target
    print(f"{text:44}{median:10.2f}{'yes' if met else 'no':>6}")
    print(f"  {len(seconds)} runs, {min(seconds):.2f} to {max(seconds):.2f} s")
    return met


def one_scenario(gradcheck: str, name: str, runs: int, target: float) -> bool:
    command = [gradcheck, "--scenario", name]
    timed_run(command)  # warms the page cache
    walls = [timed_run(command)[0] for _ in range(runs)]
    return row(f"{name} <= {target:g} s wall", walls, target)


def one_arm(gradcheck: str, runs: int) -> bool:
    command = [gradcheck, "--scenario", ARM_SCENARIO, "--format", "json"]
    reports = [json.loads(timed_run(command)[1]) for _ in range(runs)]
    arms = [report["scenarios"][0]["arms"][1]["duration_s"] for report in reports]
    return row(f"an arm of {ARM_SCENARIO} <= {ARM_TARGET:g} s", arms, ARM_TARGET)


def all_scenarios(gradcheck: str, runs: int) -> bool:
    command = [gradcheck, "--all", "--tag", "native", "--format", "json"]
    walls, arms, scenarios = [], 0, 0
    for _ in range(runs):
        wall, out = timed_run(command)
        report = json.loads(out)
        scenarios = len(report["scenarios"])
        arms = sum(len(scenario["arms"]) for scenario in report["scenarios"])
        walls.append(wall)
    text = f"--all, {scenarios} scenarios, {arms} arms <= {ALL_TARGET:g} s"
    return row(text, walls, ALL_TARGET)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Median wall times of scenarios.")
    parser.add_argument("gradcheck", type=Path, help="for example build/release/gradcheck")
    parser.add_argument("--scenario", default=ARM_SCENARIO)
    parser.add_argument("--runs", type=int, default=5, help="after one that warms the page cache")
    parser.add_argument("--target", type=float, default=2.0, metavar="SECONDS")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    gradcheck = str(arguments.gradcheck)
    try:
        met = [
            one_scenario(gradcheck, arguments.scenario, arguments.runs, arguments.target),
            one_arm(gradcheck, arguments.runs),
            all_scenarios(gradcheck, max(1, arguments.runs // 2)),
        ]
    except (RunFailed, OSError) as error:
        print(f"scenario_bench.py: {error}", file=sys.stderr)
        return 3
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
