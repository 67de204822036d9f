# SPDX-License-Identifier: Apache-2.0
"""scripts/setup on machines that lack something: one clear sentence, and the line to type."""

import os
import subprocess
from pathlib import Path

from conftest import ROOT


def stub(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def run_setup(path: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(ROOT / "scripts/setup"), *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": path},
        check=False,
    )


def tools_without_sudo(folder: Path) -> str:
    """A PATH with what the script itself uses, and nothing to become root with."""
    for tool in ("bash", "dirname", "grep", "mkdir", "cat", "cmp", "tail", "sed"):
        (folder / tool).symlink_to(f"/usr/bin/{tool}")
    return str(folder)


def test_without_root_and_sudo_it_prints_the_line_to_type(tmp_path: Path) -> None:
    stub(tmp_path, "dpkg-query", "exit 1")
    stub(tmp_path, "id", "echo 1000")
    done = run_setup(tools_without_sudo(tmp_path))
    assert done.returncode == 3
    assert "as root, run: apt-get install -y --no-install-recommends g++" in done.stderr


def test_with_sudo_it_installs_through_sudo_and_says_when_that_fails(tmp_path: Path) -> None:
    stub(tmp_path, "dpkg-query", "exit 1")
    stub(tmp_path, "id", "echo 1000")
    stub(tmp_path, "sudo", 'echo "$@" >> "$0.log"; echo "E: no network" >&2; exit 100')
    done = run_setup(tools_without_sudo(tmp_path))
    assert done.returncode == 3
    assert "E: no network" in done.stderr
    assert "could not be installed" in done.stderr
    assert "apt-get update" in (tmp_path / "sudo.log").read_text()


def test_an_unknown_option_is_refused() -> None:
    done = run_setup(os.environ["PATH"], "--presett", "dev")
    assert done.returncode == 2
    assert "--presett" in done.stderr


def test_scripts_work_from_any_directory(tmp_path: Path) -> None:
    done = subprocess.run(
        [str(ROOT / "scripts/setup"), "--help"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0
    assert "--preset" in done.stdout
