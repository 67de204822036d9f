# SPDX-License-Identifier: Apache-2.0
"""What a training script may say to gradcheck. Without the agent it says it to nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

__all__ = ["log_probs"]


def log_probs(
    *,
    new: torch.Tensor | None = None,
    old: torch.Tensor | None = None,
    mask: torch.Tensor | None = None,
) -> None:
    """Hands over the log-probabilities of the sampled tokens, [batch, tokens] each.

    `new` comes from the trained policy, `old` from the one that sampled, `mask` is non-zero where a
    token counts. They may be given in separate calls of one step. Nothing is changed or kept.
    """
