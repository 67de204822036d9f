# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: the built programs and a way to run them."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

ROOT = Path(__file__).resolve().parent.parent
REPORT_VALIDATOR = Draft7Validator(
    json.loads((ROOT / "reports/schema/report-1.schema.json").read_text())
)


def program(variable: str) -> Path:
    """A built program named by an environment variable; missing is a failure, never a skip."""
    value = os.environ.get(variable)
    assert value, f"{variable} is not set; run scripts/test"
    path = Path(value)
    assert path.exists(), f"{variable}={value} does not exist; run scripts/test"
    return path


@dataclass
class Result:
    """One finished run of gradcheck."""

    code: int
    out: str
    err: str

    @property
    def first(self) -> str:
        return self.out.splitlines()[0] if self.out else ""

    def json(self) -> Any:
        """Standard output as JSON; a report must validate against its schema, whoever asked."""
        value = json.loads(self.out)
        if isinstance(value, dict) and value.get("schema") == "report-1":
            assert [e.message for e in REPORT_VALIDATOR.iter_errors(value)] == []
        return value


class Gradcheck:
    """Runs gradcheck with a private temporary folder, which must be empty again afterwards."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "tmp"
        self.folder.mkdir()
        self.binary = program("GRADCHECK_BIN")

    def __call__(self, *arguments: str | Path, timeout: float = 120, **env: str) -> Result:
        environment = {k: v for k, v in os.environ.items() if not k.endswith("COLOR")}
        environment |= {"TMPDIR": str(self.folder)} | env
        done = subprocess.run(
            [str(self.binary), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=timeout,
            env=environment,
            check=False,
        )
        # torch itself leaves folders of its compiler and of torchrun behind.
        own = ("torchinductor", "torchelastic")
        left = [path for path in self.folder.iterdir() if not path.name.startswith(own)]
        assert left == [], "temporary files were left behind"
        return Result(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def gradcheck(tmp_path: Path) -> Gradcheck:
    return Gradcheck(tmp_path)
