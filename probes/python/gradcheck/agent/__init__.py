# SPDX-License-Identifier: Apache-2.0
"""The agent: records evidence inside an unmodified PyTorch job.

Loaded by _site/sitecustomize.py in every Python process of the job, so this file and boot.py import
nothing that is not there already; the rest is loaded when the program imports torch.
"""

from __future__ import annotations

from .boot import start

__all__ = ["start"]
