#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads kernel_bench's JSON and prints each speed as a ratio to a yardstick of the same run.

Absolute speeds say more about the machine than about the kernel; a ratio within one run does not.
Medians over repetitions. Exit status 1 when a target is missed, 2 when a benchmark is absent.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import NamedTuple

# Fastest first: targets are for the best instruction set of the machine.
ISAS = ("avx512", "avx2", "portable")


class Target(NamedTuple):
    benchmark: str  # "{isa}" stands for an instruction set
    yardstick: str
    least: float


# memcpy counts the bytes copied, that is the size of the buffer, as the kernel does. The digest
# alone is held against SHA-1 too, which has no statistics and no sketch to compute; where libcrypto
# uses the processor's SHA instructions the whole pass cannot be ten times as fast.
TARGETS = (
    Target("kernel/f64/{isa}", "memcpy", 0.6),
    Target("kernel/f32/{isa}", "memcpy", 0.6),
    Target("kernel/f16/{isa}", "memcpy", 0.25),
    Target("kernel/bf16/{isa}", "memcpy", 0.25),
    Target("kernel/f32/{isa}", "sha1", 10),
    Target("kernel/digest_only/{isa}", "sha1", 10),
)


def median_speeds(report: dict) -> dict[str, float]:
    """Bytes per second by benchmark name."""
    return {
        entry["run_name"]: float(entry["bytes_per_second"])
        for entry in report["benchmarks"]
        if entry.get("aggregate_name") == "median"
    }


def measured_isas(speeds: dict[str, float]) -> list[str]:
    return [isa for isa in ISAS if f"kernel/f32/{isa}" in speeds]


def print_speeds(speeds: dict[str, float]) -> None:
    print(f"{'':30}{'GB/s':>8}{'/ memcpy':>10}{'/ xxh3':>10}{'/ sha1':>10}")
    for name, speed in sorted(speeds.items(), key=lambda row: ("/" in row[0], row[0])):
        ratios = "".join(f"{speed / speeds[of]:10.2f}" for of in ("memcpy", "xxh3", "sha1"))
        print(f"{name:30}{speed / 1e9:8.2f}{ratios}")


def print_targets(speeds: dict[str, float], isa: str) -> bool:
    print(f"\n{'target':44}{'measured':>10}{'met':>6}")
    all_met = True
    for target in TARGETS:
        name = target.benchmark.format(isa=isa)
        ratio = speeds[name] / speeds[target.yardstick]
        met = ratio >= target.least
        all_met = all_met and met
        row = f"{name} >= {target.least:g} x {target.yardstick}"
        print(f"{row:44}{ratio:10.2f}{'yes' if met else 'no':>6}")
    return all_met


def main() -> int:
    parser = argparse.ArgumentParser(description="Ratios and targets of one kernel_bench run.")
    parser.add_argument("report", type=Path, help="kernel_bench --benchmark_out file")
    speeds = median_speeds(json.loads(parser.parse_args().report.read_text(encoding="utf-8")))
    isas = measured_isas(speeds)
    try:
        print_speeds(speeds)
        return 0 if print_targets(speeds, isas[0]) else 1
    except (KeyError, IndexError):
        print("ratios.py: no full run: run kernel_bench unfiltered, repeated", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
