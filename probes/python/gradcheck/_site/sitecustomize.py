# SPDX-License-Identifier: Apache-2.0
"""Starts the agent in a Python process of a job, then runs the sitecustomize that it shadows."""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader

_HERE = os.path.dirname(os.path.abspath(__file__))
# A name of its own: a program may have a module `gradcheck`.
_AGENT = "_gradcheck_agent"


def _start() -> None:
    job = os.environ.get("GRADCHECK_JOB")
    if not job or _AGENT in sys.modules:
        return
    folder = os.path.join(os.path.dirname(_HERE), "agent")
    path = os.path.join(folder, "__init__.py")
    loader = SourceFileLoader(_AGENT, path)
    spec = ModuleSpec(_AGENT, loader, origin=path, is_package=True)
    spec.submodule_search_locations = [folder]
    spec.has_location = True
    package = type(sys)(_AGENT)
    package.__spec__, package.__loader__, package.__file__ = spec, loader, path
    package.__package__, package.__path__ = _AGENT, [folder]
    sys.modules[_AGENT] = package
    loader.exec_module(package)
    package.start(job, os.path.dirname(_HERE))


def _is_ours(path: str) -> bool:
    return os.path.abspath(path or ".") == _HERE


def _run_shadowed() -> None:
    others = [path for path in sys.path if not _is_ours(path)]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = type(sys)("sitecustomize")
    module.__spec__, module.__loader__ = spec, spec.loader
    module.__file__, module.__package__ = spec.origin, ""
    if spec.submodule_search_locations is not None:
        module.__package__, module.__path__ = "sitecustomize", spec.submodule_search_locations
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _start()
except Exception as error:
    # The job comes first: without an agent it runs as if gradcheck were not there.
    sys.modules.pop(_AGENT, None)
    print(f"gradcheck: the agent did not start: {error!r}", file=sys.stderr)
_run_shadowed()
