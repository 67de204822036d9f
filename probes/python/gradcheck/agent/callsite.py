# SPDX-License-Identifier: Apache-2.0
"""Where in the program something was called: FILE:LINE."""

from __future__ import annotations

import os
import sys
from types import FrameType

_LIBRARIES = {
    "accelerate",
    "deepspeed",
    "lightning",
    "lightning_fabric",
    "pytorch_lightning",
    "torch",
    "transformers",
}
_OURS = __name__.partition(".")[0]


class CallSite:
    """Paths are relative to the folder in which the process started, as far as they lie there."""

    def __init__(self) -> None:
        self._here = _working_directory()

    def find(self) -> str:
        """The innermost frame that is neither ours nor a training library's; failing that, the
        innermost that is not torch's."""
        fallback = ""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
            if package != _OURS and package not in _LIBRARIES:
                return self._place(frame)
            if not fallback and package not in (_OURS, "torch"):
                fallback = self._place(frame)
            frame = frame.f_back
        return fallback

    def _place(self, frame: FrameType) -> str:
        return f"{self._shortened(frame.f_code.co_filename)}:{frame.f_lineno}"

    def _shortened(self, path: str) -> str:
        for folder in ("/site-packages/", "/dist-packages/"):
            if folder in path:
                return path.rpartition(folder)[2]
        if self._here and path.startswith(self._here + "/"):
            return path[len(self._here) + 1 :]
        return os.path.basename(path) if os.path.isabs(path) else path


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""
