# SPDX-License-Identifier: Apache-2.0
"""Reports held against the schema that ships with them.

The golden files are what the reporter writes (tests/reports), so a field that is added, dropped or
renamed without its line in the schema fails here. GRADCHECK_REPORTS_DIR names a folder whose
reports are checked too: those of real runs.
"""

import json
import math
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden" / "reports"
SCHEMA = ROOT / "reports" / "schema" / "report-1.schema.json"


def report_files() -> list[Path]:
    files = sorted(GOLDEN.glob("*.json"))
    if folder := os.environ.get("GRADCHECK_REPORTS_DIR"):
        files += sorted(Path(folder).rglob("*.json"))
    return files


@cache
def validator() -> jsonschema.Draft7Validator:
    schema = json.loads(SCHEMA.read_text("utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"a bare {name} is not JSON")


def load(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"), parse_constant=refuse_constant)


def complaints(report: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in validator().iter_errors(report)]


def leaves(value: Any, path: str = "$") -> Iterator[tuple[str, Any]]:
    """Every value that holds no other, with its path; empty arrays and objects included."""
    if isinstance(value, dict) and value:
        for key, member in value.items():
            yield from leaves(member, f"{path}.{key}")
    elif isinstance(value, list) and value:
        for index, member in enumerate(value):
            yield from leaves(member, f"{path}[{index}]")
    else:
        yield path, value


def test_there_are_golden_reports() -> None:
    assert len(list(GOLDEN.glob("*.json"))) >= 7


@pytest.mark.parametrize("path", report_files(), ids=lambda path: path.name)
def test_a_report_fits_the_schema(path: Path) -> None:
    assert complaints(load(path)) == []


def test_the_full_report_leaves_nothing_out() -> None:
    """What full.json leaves empty, no round trip would miss."""
    empty = [
        path
        for path, value in leaves(load(GOLDEN / "full.json"))
        if not value and path != "$.schema_minor"
    ]
    assert empty == []


def test_the_full_report_has_no_two_equal_numbers() -> None:
    """Two fields that were swapped would show."""
    numbers: dict[float, str] = {}
    for path, value in leaves(load(GOLDEN / "full.json")):
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        assert value not in numbers, f"{path} and {numbers[value]} are both {value}"
        numbers[value] = path
    assert len(numbers) > 80


@pytest.mark.parametrize("path", report_files(), ids=lambda path: path.name)
def test_every_number_is_finite(path: Path) -> None:
    for where, value in leaves(load(path)):
        assert not isinstance(value, float) or math.isfinite(value), where


def test_the_run_is_described_by_its_first_arm() -> None:
    """full.json aside, whose numbers all differ by design."""
    checked = 0
    for path in report_files():
        report = load(path)
        arms = [arm for scenario in report["scenarios"][:1] for arm in scenario["arms"][:1]]
        for arm in arms if path.name != "full.json" else []:
            for key in ("world_size", "backend", "seed"):
                assert report["run"][key] == arm[key], f"{path.name}: {key}"
            checked += 1
    assert checked >= 5


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if "properties" in schema:
            yield schema
        for member in schema.values():
            yield from objects(member)


def test_the_schema_is_exact() -> None:
    """Every key is required and no other is allowed, so that drift shows in both directions."""
    found = list(objects(json.loads(SCHEMA.read_text("utf-8"))))
    assert len(found) > 15
    for schema in found:
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])


def test_the_docs_name_every_key() -> None:
    page = (ROOT / "docs" / "report.md").read_text("utf-8")
    for schema in objects(json.loads(SCHEMA.read_text("utf-8"))):
        missing = [key for key in schema["properties"] if not re.search(rf"`{key}(\[\])?`", page)]
        assert missing == []


def test_a_wrong_report_is_refused() -> None:
    """The negative control of this file."""
    report = load(GOLDEN / "full.json")
    arm = report["scenarios"][0]["arms"][0]
    arm["totals"]["differed"] = -1
    arm["verdict"] = "passed"
    arm["later"] = 1
    del arm["plan"]
    assert len(complaints(report)) == 4
