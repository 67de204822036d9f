# SPDX-License-Identifier: Apache-2.0
"""The pages under docs/ say what the tables of codes, causes and records say."""

import base64
import json
import math
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import ROOT, Gradcheck

DOCS = ROOT / "docs"
FINDINGS = DOCS / "findings"
RESERVED = "Reserved: this version does not"


class Code(NamedTuple):
    """A row of kCodes."""

    number: str
    severity: str
    title: str
    hint: str

    @property
    def text(self) -> str:
        return f"GC{self.number}"


class Cause(NamedTuple):
    """A row of kCauses."""

    name: str
    summary: str
    advice: str


TABLES = (ROOT / "src/model/finding.cpp").read_text()
CODES = [
    Code(*row)
    for row in re.findall(
        r'\{(\d{3}), (note|warning|error),\s*"([^"]+)",\s*"([^"]+)"\}', TABLES, re.DOTALL
    )
]
CAUSES = [
    Cause(*row)
    for row in re.findall(r'\{Cause::\w+, "(\w+)",\s*"([^"]+)",\s*"([^"]+)"\}', TABLES, re.DOTALL)
]
VERDICT = "\n".join(path.read_text() for path in sorted((ROOT / "src/verdict").rglob("*.cpp")))
EVIDENCE = (DOCS / "evidence.md").read_text()

code_ids = pytest.mark.parametrize("code", CODES, ids=lambda code: code.text)
cause_ids = pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.name)


def page_of(code: Code) -> str:
    return (FINDINGS / f"{code.text}.md").read_text()


def flat(text: str) -> str:
    return " ".join(text.split())


def test_no_row_of_the_tables_escapes_the_pattern() -> None:
    assert len(CODES) == len(re.findall(r"^    \{\d{3},", TABLES, re.MULTILINE)) > 30
    assert len(CAUSES) == len(re.findall(r"^    \{Cause::", TABLES, re.MULTILINE)) > 20


@code_ids
def test_a_page_has_its_codes_title_and_severity(code: Code) -> None:
    lines = page_of(code).splitlines()
    assert lines[0] == f"# {code.text}: {code.title}"
    assert lines[2] == f"Severity: {code.severity}"
    assert len(lines) <= 60, "more than one screen"


@code_ids
def test_a_page_has_all_sections_in_order(code: Code) -> None:
    sections = re.findall(r"^## (.+)$", page_of(code), re.MULTILINE)
    needed = ["What was seen", "Why it matters", "Usual causes", "How to confirm", "How to repair"]
    assert sections in (needed, [*needed, "Seen in the wild"])


@code_ids
def test_a_page_says_reserved_where_no_verdict_makes_the_finding(code: Code) -> None:
    is_made = re.search(rf"\b{code.number}\b", VERDICT) is not None
    assert (RESERVED in page_of(code)) != is_made


@code_ids
def test_explain_prints_code_title_and_page(code: Code, gradcheck: Gradcheck) -> None:
    result = gradcheck("explain", code.text)
    assert result.code == 0, result.err
    assert code.text in result.first
    assert code.title in result.first
    assert f"docs/findings/{code.text}.md" in result.out


def test_explain_knows_no_code_without_a_page(gradcheck: Gradcheck) -> None:
    assert gradcheck("explain", "GC999").code == 2


def test_no_page_stands_for_an_unknown_code() -> None:
    expected = {f"{code.text}.md" for code in CODES} | {"README.md"}
    assert {path.name for path in FINDINGS.iterdir()} == expected


def test_the_index_is_the_table_of_codes() -> None:
    expected = [f"| [{c.text}]({c.text}.md) | {c.severity} | {c.title} |" for c in CODES]
    lines = (FINDINGS / "README.md").read_text().splitlines()
    assert [line for line in lines if line.startswith("| [GC")] == expected


def section_of(cause: Cause) -> str:
    text = (DOCS / "causes.md").read_text()
    found = re.search(rf"^## {cause.name}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"docs/causes.md has no section {cause.name}"
    return flat(found.group(1))


@cause_ids
def test_a_cause_is_described_as_in_the_table(cause: Cause) -> None:
    section = section_of(cause)
    assert section.lower().startswith(cause.summary.lower() + ".")
    assert cause.advice in section
    assert "- For:" in section
    assert "- Against:" in section


@cause_ids
def test_a_cause_is_reserved_where_no_verdict_names_it(cause: Cause) -> None:
    is_named = f"Cause::{cause.name}" in VERDICT
    assert (RESERVED in section_of(cause)) != is_named


@cause_ids
def test_explain_prints_a_causes_summary(cause: Cause, gradcheck: Gradcheck) -> None:
    result = gradcheck("explain", cause.name)
    assert result.code == 0, result.err
    assert result.first == f"{cause.name}: {cause.summary}"


def test_causes_are_the_tables_in_its_order() -> None:
    headings = re.findall(r"^## (.+)$", (DOCS / "causes.md").read_text(), re.MULTILINE)
    assert headings == [cause.name for cause in CAUSES]


# --- links


def without_code(text: str) -> str:
    return re.sub(
        r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    )


def anchors_of(text: str) -> set[str]:
    """Anchors as GitHub makes them of headings."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+?)\s*$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def anchors_in(target: Path, page: Path, text: str) -> set[str]:
    return anchors_of(text if target == page else target.read_text())


def broken_links(text: str, page: Path) -> list[str]:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(text)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors_in(target, page, text)):
            broken.append(link)
    return broken


def pages() -> list[Path]:
    top = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    return sorted(DOCS.rglob("*.md")) + [page for page in top if page.exists()]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_resolves(page: Path) -> None:
    assert broken_links(page.read_text(), page) == []


def test_a_broken_link_is_seen() -> None:
    text = (
        "# One\n[a](#one) [b](#two) [c](none.md) [d](evidence.md#none) [e](https://example.org)\n"
    )
    assert broken_links(text, DOCS / "causes.md") == ["#two", "none.md", "evidence.md#none"]


# --- the evidence format


def words_written(source: str, pattern: str) -> set[str]:
    return set(re.findall(pattern, (ROOT / source).read_text()))


def test_the_evidence_page_names_every_field_that_is_written() -> None:
    call = r'(?:text|count|integers?|texts|real|boolean|doubles_base64)\("(\w+)"'
    written = words_written("src/evidence/write/lines.cpp", call)
    written |= words_written("src/evidence/write/lines.cpp", r'(?:put_\w+\(line, |begin\()"(\w+)"')
    assert len(written) > 60
    assert [word for word in sorted(written) if f"`{word}`" not in EVIDENCE] == []


def test_the_evidence_page_names_every_field_of_control_records() -> None:
    written = words_written("src/model/json/control.cpp", r'\{"(\w+)",')
    assert len(written) > 12
    assert [word for word in sorted(written) if f"`{word}`" not in EVIDENCE] == []


def test_the_evidence_page_names_every_stage_kind_state_and_event() -> None:
    arrays = re.findall(
        r"constexpr std::array<.*?> k\w+ = \{(.*?)\};",
        (ROOT / "src/model/record.cpp").read_text(),
        re.DOTALL,
    )
    words = re.findall(r'"(\w+)"', " ".join(arrays))
    assert len(words) == 6 + 3 + 5 + 16
    assert [word for word in words if f"`{word}`" not in EVIDENCE] == []


def block_hash(block: int) -> int:
    mask = (1 << 64) - 1
    z = (0x67726164636865 + block + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def sketch_of(values: list[float]) -> list[float]:
    buckets = [0.0] * 32
    for index, value in enumerate(values):
        block, lane = divmod(index, 32)
        hashed = block_hash(block)
        buckets[lane ^ ((hashed >> 32) & 31)] += -value if hashed >> lane & 1 else value
    return buckets


def test_the_example_record_follows_from_the_text_above_it() -> None:
    found = re.search(r"^```json\n(\{.*\})\n```", EVIDENCE, re.MULTILINE)
    assert found
    record = json.loads(found.group(1))
    values = [((7 * i % 11) - 5) / 4 for i in range(40)]
    assert math.prod(record["shape"]) == record["n"] == len(values)
    assert record["zeros"] == values.count(0)
    assert record["l1"] == sum(map(abs, values))
    assert record["l2"] == math.sqrt(sum(x * x for x in values))
    assert (record["min"], record["max"]) == (min(values), max(values))
    assert base64.b64decode(record["sketch"]) == struct.pack("<32d", *sketch_of(values))


def test_the_page_of_native_scenarios_is_their_files() -> None:
    """Made anew by `scripts/scenarios_page > docs/scenarios.md`."""
    command = [sys.executable, str(ROOT / "scripts" / "scenarios_page")]
    made = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    assert (DOCS / "scenarios.md").read_text() == made
