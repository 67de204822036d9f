# SPDX-License-Identifier: Apache-2.0
"""What the training scripts here share: a tiny network, its data and the process group."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor, nn

FEATURES, HIDDEN, CLASSES = 6, 8, 4


class Net(nn.Module):
    """Six tensors. Inputs are cast to the type of the weights."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.body = nn.Linear(FEATURES, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN)
        self.drop = nn.Dropout(dropout)
        self.head = nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.tanh(self.norm(self.body(x.to(self.body.weight.dtype))))
        return self.head(self.drop(hidden))


def make_net(seed: int = 1, dropout: float = 0.0) -> Net:
    """The same weights on every rank."""
    torch.manual_seed(seed)
    return Net(dropout)


def batch(rank: int, step: int, micro: int = 0, rows: int = 4) -> tuple[Tensor, Tensor]:
    """Inputs [rows, FEATURES] and classes [rows]; a function of its arguments only."""
    generator = torch.Generator().manual_seed(((7 * 1000 + rank) * 1000 + step) * 100 + micro)
    x = torch.randn(rows, FEATURES, generator=generator)
    y = torch.randint(CLASSES, (rows,), generator=generator)
    return x, y


@contextmanager
def process_group() -> Iterator[int]:
    """Joins the Gloo world of the environment; the rank."""
    dist.init_process_group("gloo")
    yield dist.get_rank()
    dist.destroy_process_group()


def log(step: int, loss: Tensor) -> None:
    """One line a step on rank 0, with all digits."""
    if int(os.environ.get("RANK", "0")) == 0:
        print(f"step {step} loss {loss.item()!r}", flush=True)
