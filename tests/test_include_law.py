# SPDX-License-Identifier: Apache-2.0
"""Include direction is law: every #include of ours and of a library is held against one table."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)

# Folder of ours → folders of ours it may include. The longest matching prefix of a file decides.
LAYERS: dict[str, set[str]] = {
    "src/model": {"src/model"},
    "src/model/json": {"src/model", "src/model/json"},
    "src/numeric": {"src/model", "src/numeric"},
    "src/evidence/write": {"src/model", "src/numeric", "src/evidence/write"},
    "src/evidence/read": {"src/model", "src/evidence/read"},
    "src/verdict": {"src/model", "src/numeric", "src/verdict"},
    "src/scenario": {"src/model", "src/model/json", "src/scenario"},
    "src/launch": {"src/model", "src/model/json", "src/evidence/read", "src/launch"},
    "reports": {"src/model", "src/model/json", "reports"},
    "src/run": {
        "src/model",
        "src/model/json",
        "src/numeric",
        "src/evidence/read",
        "src/verdict",
        "src/scenario",
        "src/launch",
        "src/run",
        "reports/reporter.h",
    },
    "src/cli": {
        "src/model",
        "src/model/json",
        "src/scenario",
        "src/run",
        "reports",
        "src/cli",
    },
    "src/main.cpp": {"src/cli", "src/run"},
    "probes/native": {
        "src/model",
        "src/model/json",
        "src/numeric",
        "src/evidence/write",
        "probes/native",
    },
    "probes/python": {"src/model", "src/numeric", "src/evidence/write", "probes/python"},
}

# Libraries by the first part of their include path → who may include them.
LIBRARIES: dict[str, set[str]] = {
    "nlohmann": {"src/model/json"},
    "simdjson": {"src/evidence/read"},
    "zip": {"src/evidence/read"},
    "xxhash": {"src/numeric"},
    "CLI": {"src/cli"},
    "pugixml": {"reports"},
    "torch": {"probes/native"},
    "ATen": {"probes/native"},
    "c10": {"probes/native"},
    "gloo": {"probes/native"},
    "nccl": {"probes/nccl"},
}


def sources() -> list[Path]:
    folders = [ROOT / "src", ROOT / "reports", ROOT / "probes"]
    return sorted(p for f in folders for p in f.rglob("*") if p.suffix in {".h", ".cpp"})


def layer_of(path: str) -> str:
    matches = [layer for layer in LAYERS if path == layer or path.startswith(layer + "/")]
    assert matches, f"{path} belongs to no layer"
    return max(matches, key=len)


def resolve(include: str, source: Path) -> str | None:
    for base in (ROOT / "src", ROOT, ROOT / "probes", source.parent):
        if (base / include).is_file():
            return str((base / include).resolve().relative_to(ROOT))
    return None


def violations_of(source: Path) -> list[str]:
    path = str(source.relative_to(ROOT))
    layer = layer_of(path)
    found = []
    for kind, include in INCLUDE.findall(source.read_text()):
        target = resolve(include, source) if kind == '"' else None
        if kind == '"' and target is None and not include.startswith(("gloo/", "torch/", "ATen/")):
            found.append(f'{path}: "{include}" does not exist')
        elif target is not None:
            allowed = LAYERS[layer]
            if layer_of(target) not in allowed and target not in allowed:
                found.append(f"{path}: {layer} must not include {target}")
        else:
            library = include.split("/")[0].removesuffix(".h").removesuffix(".hpp")
            if library in LIBRARIES and layer not in LIBRARIES[library]:
                found.append(f"{path}: {layer} must not include <{include}>")
            if library == "fmt" and layer == "src/numeric":
                found.append(f"{path}: numeric must not include fmt")
    return found


def test_no_file_breaks_the_include_law() -> None:
    files = sources()
    assert len(files) > 50
    assert [line for file in files for line in violations_of(file)] == []


def test_torch_headers_that_cost_half_a_minute_are_never_included() -> None:
    for file in sources():
        text = file.read_text()
        assert "<torch/torch.h>" not in text, file
        if "<torch/nn.h>" in text:
            assert "probes/native/models" in str(file), file


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/verdict/bad.cpp", '#include "reports/reporter.h"\n'),
        ("src/run/bad.cpp", '#include "reports/console.h"\n'),
        ("src/model/bad.h", "#include <nlohmann/json.hpp>\n"),
        ("src/numeric/bad.cpp", "#include <fmt/format.h>\n"),
        ("src/launch/bad.cpp", "#include <torch/types.h>\n"),
        ("probes/python/capture/bad.cpp", "#include <torch/types.h>\n"),
    ],
)
def test_the_law_has_teeth(path: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda _self: text)
    assert len(violations_of(ROOT / path)) == 1
