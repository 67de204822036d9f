# SPDX-License-Identifier: Apache-2.0
"""Every system header of the build comes from a package that scripts/packages.txt asks for."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def wanted() -> set[str]:
    lines = (ROOT / "scripts/packages.txt").read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def closure(packages: set[str]) -> set[str]:
    """The packages and all that they depend on, without recommendations."""
    out = run(
        "apt-cache",
        "depends",
        "--recurse",
        "--no-recommends",
        "--no-suggests",
        "--no-conflicts",
        "--no-breaks",
        "--no-replaces",
        "--no-enhances",
        *sorted(packages),
    )
    return {m.group(1) for m in re.finditer(r"^(?!\s)([^<\s:]+)", out, re.MULTILINE)} | packages


def system_headers() -> set[str]:
    binary = os.environ.get("GRADCHECK_BIN")
    assert binary, "GRADCHECK_BIN is not set; run scripts/test"
    out = run("ninja", "-C", str(Path(binary).parent), "-t", "deps")
    headers = {line.strip() for line in out.splitlines() if line.startswith("    /usr/")}
    return {os.path.realpath(header) for header in headers}


def packages_of(files: set[str]) -> dict[str, str]:
    out = run("dpkg", "-S", *sorted(files))
    owners: dict[str, str] = {}
    for line in out.splitlines():
        names, _, path = line.partition(": ")
        owners[path] = names.split(",")[0].split(":")[0].strip()
    return owners


@pytest.mark.skipif(shutil.which("dpkg") is None, reason="not a Debian system")
def test_every_system_header_comes_from_a_listed_package() -> None:
    headers = system_headers()
    assert len(headers) > 200, "the build recorded no dependencies"
    owners = packages_of(headers)
    known = closure(wanted())
    assert len(known) > len(wanted()), "apt-cache knows no dependencies; run apt-get update"
    assert {f"{p}: {owners.get(p)}" for p in headers if owners.get(p) not in known} == set()


def test_the_list_is_needed() -> None:
    """Without the JSON library on the list its headers would be found out."""
    nlohmann = {h for h in system_headers() if "nlohmann" in h}
    assert nlohmann
    owners = packages_of(nlohmann)
    without = closure(wanted() - {"nlohmann-json3-dev"})
    assert not {owners[h] for h in nlohmann} & without
