# SPDX-License-Identifier: Apache-2.0
"""Waits for the program to import what is to be hooked. Costs next to nothing until then."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader

TYPE_CHECKING = False  # typing costs 2 ms in every process of the job
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from .core import Agent

# Module of the program → module of the agent and its function that places the hooks. It is called
# right after the module's own code ran, before anyone copied a name from it.
HOOKS = {
    "torch.autograd.graph": ("backward", "hook_graph"),
    "torch.autograd": ("backward", "hook_autograd"),
    "torch.optim.optimizer": ("optimizers", "hook_optimizer"),
    "torch.amp.grad_scaler": ("scaler", "hook_scaler"),
    "torch.nn.utils.clip_grad": ("clip", "hook_clip"),
    "torch.nn.utils": ("clip", "hook_utils"),
    "torch.nn.functional": ("log_softmax", "hook_functional"),
    "torch.special": ("log_softmax", "hook_special"),
    "torch.optim": ("log_probs", "hook_optim"),
    "trl.trainer.grpo_trainer": ("trl", "hook_grpo"),
    "trl.trainer.rloo_trainer": ("trl", "hook_rloo"),
    "torch.nn.parallel.distributed": ("ddp", "hook_ddp"),
    "torch.distributed.distributed_c10d": ("collectives", "hook_collectives"),
    "torch.distributed.algorithms.join": ("ddp", "hook_join"),
    "torch.distributed.fsdp.fully_sharded_data_parallel": ("unsupported", "hook_fsdp"),
    "torch.distributed.fsdp._fully_shard._fully_shard": ("unsupported", "hook_fully_shard"),
    "torch.distributed._composable.fsdp.fully_shard": ("unsupported", "hook_fully_shard"),
    "deepspeed.runtime.engine": ("unsupported", "hook_deepspeed"),
    "torch": ("ending", "hook_torch"),
}


class Seen:
    """The file in the run directory that tells how far this process came: silence gets a name."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def tell(self, how_far: str) -> None:
        stem = os.path.join(self.directory, f"seen-{os.getpid()}")
        new = f"{stem}-{how_far}" if how_far else stem
        try:
            for old in (stem, f"{stem}-torch"):
                if old != new and os.path.exists(old):
                    return os.replace(old, new)
            # Not there in a process that was forked.
            os.close(os.open(new, os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError:
            pass  # the run directory has gone: nobody asks any more
        return None


class Hooks:
    """Places hooks as modules are imported; the agent itself is made at the first of them."""

    def __init__(self, job: str, seen: Seen) -> None:
        self._job = job
        self._seen = seen
        self._agent: Agent | None = None
        self._broken = False

    def place(self, name: str, module: ModuleType) -> None:
        if self._broken:
            return
        try:
            if self._agent is None:
                core = import_module(".core", __package__)
                self._agent = core.make(self._job, self._seen)
            place, function = HOOKS[name]
            getattr(import_module(f".{place}", __package__), function)(self._agent, module)
        except Exception as error:
            if self._agent is None:
                self._broken = True  # the job's description says nothing: do nothing at all
            else:
                self._agent.unhooked(name, error)


class Finder:
    """First on sys.meta_path: lets the others find a module and adds a call after its code."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._finding: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in HOOKS or name in self._finding:
            return None
        self._finding.add(name)
        try:
            spec = self._ask_others(name, path, target)
        finally:
            self._finding.discard(name)
        if spec is not None and spec.loader is not None:
            self._add_call(name, spec.loader)
        return spec

    def _ask_others(self, name: str, path: Any, target: Any) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                return spec
        return None

    # On the loader object itself, so that it stays what it was in everybody's eyes.
    def _add_call(self, name: str, loader: Any) -> None:
        original: Callable[[ModuleType], None] = loader.exec_module
        place = self._hooks.place

        def exec_module(module: ModuleType) -> None:
            if module.__name__ == name:
                loader.__dict__.pop("exec_module", None)
            original(module)
            if module.__name__ == name:
                place(name, module)

        try:
            loader.exec_module = exec_module
        except AttributeError:
            return


class PackageFinder:
    """Last on sys.meta_path: `import gradcheck` works in a job, unless the program has its own."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != "gradcheck":
            return None
        origin = os.path.join(self._folder, "__init__.py")
        spec = ModuleSpec(name, SourceFileLoader(name, origin), origin=origin, is_package=True)
        spec.submodule_search_locations = [self._folder]
        spec.has_location = True
        return spec


# The directory is needed at once, json (3 ms) only if torch is ever imported.
def _directory_of(job: str) -> str:
    start = job.find('"directory"')
    parts = job[start:].split('"', 4)
    if start < 0 or len(parts) < 5 or parts[2].strip() != ":":
        return ""
    if "\\" not in parts[3]:
        return parts[3]
    import json

    return str(json.loads(job).get("directory", ""))


def start(job: str, folder: str) -> None:
    """Called once in a process, before the program; `folder` is the package `gradcheck`."""
    directory = _directory_of(job)
    if not directory:
        return
    seen = Seen(directory)
    seen.tell("")
    hooks = Hooks(job, seen)
    sys.meta_path.insert(0, Finder(hooks))
    sys.meta_path.append(PackageFinder(folder))
    for name in HOOKS:
        if name in sys.modules:  # imported by a .pth file
            hooks.place(name, sys.modules[name])
