#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the agent costs an unmodified DDP job of some 105 million parameters on two ranks.

Within one job every second step is checked, so checked and unchecked steps are timed in pairs; the
same job is then run alone, and once with the comparison by hand that people paste. Ratios are of
medians. Exit status 1 when a target is missed, 3 when a job does not end with 0.
"""

import argparse
import os
import re
import socket
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

JOB = Path(__file__).resolve().parent / "jobs" / "large_ddp.py"
WARM = 4  # steps 0 to 2 are always checked; memory is touched for the first time there


class RunFailed(Exception):
    """A job ended otherwise than with 0, so its times mean nothing."""


@dataclass
class Times:
    """What one job printed."""

    steps: dict[int, float] = field(default_factory=dict)
    rss: int = 0

    def median(self, parity: int | None = None) -> float:
        """Median seconds of the warm steps, or of the even (0) or odd (1) ones."""
        chosen = [t for s, t in self.steps.items() if s >= WARM and parity in (None, s % 2)]
        return statistics.median(chosen)


def times_from(text: str) -> Times:
    times = Times()
    for step, seconds in re.findall(r"step (\d+) seconds ([\d.]+)", text):
        times.steps[int(step)] = float(seconds)
    times.rss = int(re.search(r"rss (\d+)", text)[1])  # type: ignore[index]
    return times


def output_of(command: list[str], env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if done.returncode != 0:
        raise RunFailed(f"exit {done.returncode}: {' '.join(command)}\n{done.stderr[-2000:]}")
    return done.stdout


def run_alone(python: str, arguments: list[str]) -> Times:
    """Two ranks without gradcheck."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = []
    for rank in range(2):
        env = os.environ | {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
        env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
        command = [python, str(JOB), *arguments]
        ranks.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
    outputs = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode != 0 for rank in ranks):
        raise RunFailed("the job alone failed")
    return times_from(outputs[0])


def run_checked(gradcheck: Path, python: str, arguments: list[str]) -> Times:
    command = [str(gradcheck), "exec", "-n", "2", "--every", "2", "-q", "--"]
    return times_from(output_of([*command, python, str(JOB), *arguments]))


def row(text: str, ratio: float, most: float | None) -> bool:
    met = most is None or ratio <= most
    verdict = "" if most is None else ("yes" if met else "no")
    print(f"{text:44}{ratio:10.3f}{verdict:>6}")
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description="Cost of the agent on a large DDP job.")
    parser.add_argument("gradcheck", type=Path, help="for example build/release/gradcheck")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with torch")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--width", default="1024")
    parser.add_argument("--depth", default="50")
    options = parser.parse_args()
    size = ["--width", options.width, "--depth", options.depth]
    arguments = ["--steps", str(options.steps), *size]
    try:
        checked = run_checked(options.gradcheck, options.python, arguments)
        alone = run_alone(options.python, arguments)
        by_hand = run_alone(options.python, [*arguments, "--by-hand", "2"])
    except (RunFailed, OSError) as error:
        print(f"exec_bench.py: {error}", file=sys.stderr)
        return 3
    met = [
        row("exec: checked step <= 1.10 x unchecked", checked.median(0) / checked.median(1), 1.10),
        row("exec: unchecked step <= 1.01 x plain", checked.median(1) / alone.median(), 1.01),
        row("exec: memory <= 1.10 x plain", checked.rss / alone.rss, 1.10),
        row(
            "all_gather + torch.equal by hand / without",
            by_hand.median(0) / by_hand.median(1),
            None,
        ),
    ]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
