# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema that ships for editors against the decoder that decides.

tests/scenario/corpus holds right files, wrong files, and files that only the decoder can refuse
(what a schema cannot express). pointers.json says where in a refused file the decoder must point.
"""

import json
import os
import subprocess
from functools import cache
from pathlib import Path

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parent.parent
SCENARIOS = ROOT / "scenarios"
CORPUS = ROOT / "tests" / "scenario" / "corpus"


def files(folder: str) -> list[Path]:
    return sorted((CORPUS / folder).glob("*.json"))


def named(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "path", paths, ids=lambda path: f"{path.parent.name}/{path.stem}"
    )


@cache
def validator() -> jsonschema.Draft7Validator:
    schema = json.loads((SCENARIOS / "schema" / "scenario-1.schema.json").read_text("utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def schema_complaints(path: Path) -> list[str]:
    return [error.message for error in validator().iter_errors(json.loads(path.read_bytes()))]


def decode(path: Path) -> subprocess.CompletedProcess[str]:
    command = [os.environ["GRADCHECK_BIN"], "--validate", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def pointers() -> dict[str, str]:
    return json.loads((CORPUS / "pointers.json").read_text("utf-8"))


def assert_refused(path: Path) -> None:
    """Exit status 2, and the message names the file and the place in it."""
    result = decode(path)
    pointer = pointers()[f"{path.parent.name}/{path.stem}"]
    assert result.returncode == 2, result.stderr
    place = f"{path}: {pointer}: " if pointer else f"{path}: "
    assert place in result.stderr


def test_the_corpus_is_large_enough() -> None:
    assert len(files("right")) >= 10
    assert len(files("wrong")) >= 25
    assert len(pointers()) == len(files("wrong")) + len(files("decoder_only"))


@named(files("right") + sorted(SCENARIOS.glob("*.json")))
def test_right_files_pass_both(path: Path) -> None:
    result = decode(path)
    assert result.returncode == 0, result.stderr
    assert schema_complaints(path) == []


@named(files("wrong"))
def test_wrong_files_are_refused_by_both(path: Path) -> None:
    assert_refused(path)
    assert schema_complaints(path) != []


@named(files("decoder_only"))
def test_what_a_schema_cannot_express_is_refused_by_the_decoder(path: Path) -> None:
    assert_refused(path)


def objects(value: object, place: str = "") -> list[tuple[str, dict[str, object]]]:
    """Every object in the schema that describes an object, with its place."""
    found: list[tuple[str, dict[str, object]]] = []
    if isinstance(value, dict):
        if value.get("type") == "object":
            found.append((place, value))
        for key, child in value.items():
            found += objects(child, f"{place}/{key}")
    elif isinstance(value, list):
        for index, child in enumerate(value):
            found += objects(child, f"{place}/{index}")
    return found


def test_no_object_of_the_schema_lets_unknown_keys_through() -> None:
    for place, schema in objects(validator().schema):
        assert schema.get("additionalProperties") is False, place
