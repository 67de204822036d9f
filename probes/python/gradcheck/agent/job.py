# SPDX-License-Identifier: Apache-2.0
"""What the front asks of this job (GRADCHECK_JOB, schema job-1)."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Job(NamedTuple):
    run: str
    directory: str
    socket: str  # path; empty: write files into `evidence`
    evidence: str
    library: str
    every: int  # steps 0, 1, 2 and every so manieth are checked
    steps: int  # checked steps of a model; 0: no limit
    exact: bool  # keep copies of local gradients too
    keep_bytes: int

    def is_checked(self, step: int) -> bool:
        return step < 3 or (self.every > 0 and step % self.every == 0)

    def previous_checked(self, step: int) -> int:
        """The checked step before this one; the step itself where there is none."""
        if step <= 3:
            return max(0, step - 1)
        if self.every <= 0:
            return 2
        return max(2, (step - 1) // self.every * self.every)


def parse(text: str) -> Job:
    """Raises ValueError, KeyError or TypeError for anything that is not a job-1 object."""
    fields: dict[str, Any] = json.loads(text)
    if fields["schema"] != "job-1":
        raise ValueError(f"unknown schema {fields['schema']!r}")
    job = Job(
        run=str(fields["run"]),
        directory=str(fields["directory"]),
        socket=str(fields.get("socket", "")),
        evidence=str(fields.get("evidence", "")),
        library=str(fields["library"]),
        every=int(fields.get("every", 100)),
        steps=int(fields.get("steps", 0)),
        exact=bool(fields.get("exact", False)),
        keep_bytes=int(fields.get("keep_bytes", 268435456)),
    )
    if not job.socket and not job.evidence:
        raise ValueError("neither socket nor evidence")
    return job
