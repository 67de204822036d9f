# SPDX-License-Identifier: Apache-2.0
"""What a training script may say to gradcheck. Without the agent it says it to nobody."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

__all__ = ["log_probs"]


def log_probs(
    *,
    new: torch.Tensor | None = None,
    old: torch.Tensor | None = None,
    mask: torch.Tensor | None = None,
    rollout: torch.Tensor | None = None,
    ref: torch.Tensor | None = None,
    entropy: torch.Tensor | None = None,
    token_ids: torch.Tensor | None = None,
    name: str = "train",
) -> None:
    """Hands over the log-probabilities of the sampled tokens, [rows, tokens] or [tokens].

    `new` comes from the policy that is trained, `old` is what its ratio is taken to; `mask` is
    non-zero where a token counts. `rollout` (of the engine that sampled), `ref` (of the reference
    model), `entropy` (of the new distribution, in nats) and `token_ids` make the answer finer.
    They may be given in separate calls: hand `old` over where it is made, so that it is known how
    many optimizer steps lie between the two. `name` tells several places of a program apart.
    Nothing is changed, and no graph is kept.
    """
    take = getattr(sys.modules.get("_gradcheck_agent"), "take_log_probs", None)
    if take is not None:
        take(name, new, old, mask, rollout, ref, entropy, token_ids)
