#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording evidence costs: its share of the native step at hidden 256, measured inside the
ranks (GRADCHECK_TIMING), against a target. One arm, so that both ranks have a core.

Exit status 1 when the target is missed, 3 when gradcheck itself does not end with 0.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TIMING = re.compile(r"timing: recording ([\d.]+) s, steps ([\d.]+) s")


def scenario(hidden: int, batch: int, steps: int) -> dict[str, object]:
    native = {
        "model": "qwen3_0_6b",
        "trainer": "kto",
        "loss": "chunked",
        "wrapper": {"kind": "ddp"},
        "path": "redirected",
        "hidden_size": hidden,
        "batch_size": batch,
    }
    return {
        "name": "recording",
        "description": "The step that recording is measured on",
        "program": {"native": native},
        "ranks": 2,
        "steps": steps,
        "arms": [{"name": "redirected", "expect": {"outcome": "consistent"}}],
    }


def timings(gradcheck: Path, program: dict[str, object]) -> list[tuple[float, float]]:
    """(recording, whole steps) of each rank, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recording.json"
        path.write_text(json.dumps(program))
        command = [str(gradcheck), "--scenario", str(path), "--format", "json"]
        environment = os.environ | {"GRADCHECK_TIMING": "1"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        print(f"recording_bench.py: exit {done.returncode}\n{done.stderr}", file=sys.stderr)
        sys.exit(3)
    arm = json.loads(done.stdout)["scenarios"][0]["arms"][0]
    found = [TIMING.search(rank["stderr_tail"]) for rank in arm["ranks"]]
    return [(float(match[1]), float(match[2])) for match in found if match]


def main() -> int:
    parser = argparse.ArgumentParser(description="Share of a native step spent in recording.")
    parser.add_argument("gradcheck", type=Path, help="for example build/release/gradcheck")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--target", type=float, default=0.10)
    arguments = parser.parse_args()
    ranks = timings(
        arguments.gradcheck, scenario(arguments.hidden, arguments.batch, arguments.steps)
    )
    share = max(recording / steps for recording, steps in ranks)
    met = share <= arguments.target
    row = f"recording <= {arguments.target:g} of a step, hidden {arguments.hidden}"
    print(f"{row:44}{share:10.3f}{'yes' if met else 'no':>6}")
    step = max(steps for _, steps in ranks) / arguments.steps
    print(f"  {arguments.steps} steps of {step:.2f} s on 2 ranks")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
