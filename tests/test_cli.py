# SPDX-License-Identifier: Apache-2.0
"""The command line as a user meets it: exit codes, suggestions, reports, signals."""

import json
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import ROOT, Gradcheck


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (["--scenario", "kto_liger_dpp"], "kto_liger_ddp"),
        (["--scenario", "kto_liger_ddp", "--arm", "redirect"], "redirected"),
        (["--scenario", "kto_liger_ddp", "--format", "jsn"], "json"),
        (["--scenario", "kto_liger_ddp", "--report", "junt=x.xml"], "junit"),
        (["--scenrio", "kto_liger_ddp"], "--scenario"),
        (["repot", "x.json"], "report"),
        (["explain", "GC20"], "GC201"),
        (["--scenario", "kto_liger_ddp", "--dtype", "bf61"], "bf16"),
        (["--scenario", "kto_liger_ddp", "--color", "alway"], "always"),
    ],
)
def test_an_unknown_word_is_exit_2_with_the_nearest_name(
    gradcheck: Gradcheck, arguments: list[str], suggestion: str
) -> None:
    result = gradcheck(*arguments)
    assert result.code == 2
    assert result.out == ""
    assert len(result.err.splitlines()) == 1
    assert suggestion in result.err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--filter", "nothing_like_it*"],
        ["--scenario", "kto_liger_ddp", "--ranks", "0"],
        ["--scenario", "kto_liger_ddp", "--ranks", "two"],
        ["--scenario", "kto_liger_ddp", "--ranks", "99999999999999999999"],
        ["--scenario", "kto_liger_ddp", "--timeout", "-1"],
        ["--scenario", "kto_liger_ddp", "--timeout", "nan"],
        ["--scenario", "kto_liger_ddp", "--steps", "0"],
        ["--scenario", "kto_liger_ddp", "--seed", "-1"],
        ["--scenario", "kto_liger_ddp", "--report", "json"],
        ["--scenario", "kto_liger_ddp", "--report", "json="],
        ["--scenario", "kto_liger_ddp", "--report", "json=-", "--report", "junit=-"],
        ["--scenario", "kto_liger_ddp", "stray"],
        ["--scenario", "/nowhere/x.json"],
        ["--scenario"],
        ["--scenario-dir", "/nowhere", "--all"],
        ["report"],
        ["report", "/nowhere/run.json"],
        ["logp", "run.json"],
        ["plan"],
        ["judge"],
        ["--fail-on", "note", "--all"],
        ["--list", "--format", "junit"],
    ],
)
def test_bad_usage_is_exit_2_and_one_line(gradcheck: Gradcheck, arguments: list[str]) -> None:
    result = gradcheck(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("gradcheck: ")
    assert len(result.err.splitlines()) == 1


def test_help_list_and_version_are_exit_0(gradcheck: Gradcheck) -> None:
    for arguments in (["--help"], ["--list"], ["--version"], ["report", "--help"]):
        result = gradcheck(*arguments)
        assert (result.code, result.err) == (0, "")
        assert result.out


def test_list_as_json_names_every_scenario(gradcheck: Gradcheck) -> None:
    listed = gradcheck("--list", "--format", "json").json()
    names = {scenario["name"].partition("[")[0] for scenario in listed}  # a matrix has several
    assert names == {path.stem for path in (ROOT / "scenarios").glob("*.json")} | {
        path.stem for path in (ROOT / "scenarios/python").glob("*.json")
    }


def test_the_first_line_is_the_answer(gradcheck: Gradcheck) -> None:
    result = gradcheck("--scenario", "kto_liger_ddp")
    assert result.code == 0
    assert result.first.startswith("pass  kto_liger_ddp")
    assert "310/310 differed" in result.out
    assert "0/310 differed" in result.out


def test_arm_says_that_the_control_was_not_run(gradcheck: Gradcheck) -> None:
    result = gradcheck("--scenario", "kto_liger_ddp", "--arm", "redirected")
    assert result.code == 0
    assert "control: not run" in result.out


def test_quiet_prints_verdict_lines_only(gradcheck: Gradcheck) -> None:
    result = gradcheck("--scenario", "kto_liger_ddp", "-q")
    assert len(result.out.splitlines()) == 2


def test_verbose_shows_every_tensor(gradcheck: Gradcheck) -> None:
    result = gradcheck("--scenario", "kto_noliger_ddp", "-v")
    assert "model.layers.27.mlp.down_proj.weight" in result.out


def test_nccl_is_skipped_with_the_reason_and_exit_4(gradcheck: Gradcheck) -> None:
    result = gradcheck("--scenario", "kto_liger_ddp", "--backend", "nccl")
    assert result.code == 4
    assert "skipped: LibTorch here has no NCCL" in result.out


def test_every_format_at_once_and_rendered_again(gradcheck: Gradcheck, tmp_path: Path) -> None:
    files = {name: tmp_path / f"deep/er/{name}" for name in ("json", "junit", "markdown")}
    targets = [word for n, path in files.items() for word in ("--report", f"{n}={path}")]
    result = gradcheck("--scenario", "kto_liger_ddp", *targets)
    assert result.code == 0
    again = gradcheck("report", files["json"])
    assert (again.code, again.out) == (0, result.out)
    for name in ("json", "junit", "markdown"):
        shown = gradcheck("report", files["json"], "--format", name)
        assert shown.out == files[name].read_text()
    lint = subprocess.run(["xmllint", "--noout", files["junit"]], check=False)
    assert lint.returncode == 0


def test_dash_replaces_the_console_report(gradcheck: Gradcheck) -> None:
    result = gradcheck("--scenario", "kto_liger_single", "--report", "json=-")
    assert json.loads(result.out)["schema"] == "report-1"


def test_an_unwritable_report_is_exit_3_and_the_console_still_speaks(
    gradcheck: Gradcheck,
) -> None:
    result = gradcheck("--scenario", "kto_liger_single", "--report", "json=/proc/no/report.json")
    assert result.code == 3
    assert result.first.startswith("pass")
    assert "/proc/no/report.json" in result.err


def test_a_full_standard_output_is_exit_3(gradcheck: Gradcheck) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [gradcheck.binary, "--scenario", "kto_liger_single"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 3


def test_a_hostile_report_file_is_one_clear_error(gradcheck: Gradcheck, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    for text in ("", "[" * 100_000, '{"schema": "report-2"}', '{"schema": 7}', "\xff\xfe"):
        bad.write_bytes(text.encode("latin-1"))
        result = gradcheck("report", bad)
        assert result.code == 2, text[:20]
        assert len(result.err.splitlines()) == 1


def test_colour_only_where_asked(gradcheck: Gradcheck) -> None:
    plain = gradcheck("--scenario", "kto_liger_single")
    assert "\x1b[" not in plain.out
    assert "\x1b[" in gradcheck("--scenario", "kto_liger_single", "--color", "always").out
    forced = gradcheck("--scenario", "kto_liger_single", FORCE_COLOR="1")
    assert "\x1b[" in forced.out
    silenced = gradcheck("--scenario", "kto_liger_single", FORCE_COLOR="1", NO_COLOR="1")
    assert "\x1b[" not in silenced.out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_every_rank_and_leaves_nothing(
    gradcheck: Gradcheck, number: signal.Signals
) -> None:
    process = subprocess.Popen(
        [gradcheck.binary, "--scenario", "rank_hangs", "--timeout", "100"],
        env=os.environ | {"TMPDIR": str(gradcheck.folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 30
    while not list(gradcheck.folder.glob("gradcheck-*/store*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert list(gradcheck.folder.iterdir()) == []


def test_two_runs_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    runs = [Gradcheck(folder) for folder in folders]
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda run: run("--scenario", "kto_liger_ddp"), runs))
    assert [r.code for r in results] == [0, 0]


def test_max_abs_band_is_demanded_until_options_change_the_program(
    gradcheck: Gradcheck, tmp_path: Path
) -> None:
    data = json.loads((ROOT / "scenarios/kto_liger_ddp.json").read_text())
    data.pop("$schema", None)
    data["arms"] = data["arms"][:1]
    data["arms"][0]["expect"]["max_abs"] = {"min": 1e30}
    path = tmp_path / "kto_liger_ddp.json"
    path.write_text(json.dumps(data))
    assert gradcheck("--scenario", path).code == 1
    assert gradcheck("--scenario", path, "--seed", "3").code == 0


def test_fail_on_warning_needs_a_warning(gradcheck: Gradcheck) -> None:
    assert gradcheck("--scenario", "kto_noliger_ddp", "--fail-on", "warning").code == 0
