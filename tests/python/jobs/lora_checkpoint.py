# SPDX-License-Identifier: Apache-2.0
"""Low-rank adapters on a frozen base, under reentrant activation checkpointing."""

import argparse

import torch
from tiny import CLASSES, FEATURES, HIDDEN, batch, log, process_group
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

RANK = 2


class AdaptedLinear(nn.Module):
    """The adapter starts as zero: lora_b is."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.base = nn.Linear(inputs, outputs).requires_grad_(False)
        self.lora_a = nn.Linear(inputs, RANK, bias=False)
        self.lora_b = nn.Linear(RANK, outputs, bias=False)
        nn.init.zeros_(self.lora_b.weight)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.base(x) + self.lora_b(self.lora_a(x)))


class AdaptedNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(FEATURES, HIDDEN).requires_grad_(False)
        self.layers = nn.ModuleList(AdaptedLinear(HIDDEN, HIDDEN) for _ in range(2))
        self.head = nn.Linear(HIDDEN, CLASSES).requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        # A checkpoint that is entered again needs an input with a gradient.
        hidden = self.embed(x).requires_grad_()
        for layer in self.layers:
            hidden = checkpoint(layer, hidden, use_reentrant=True)
        return self.head(hidden)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--option", choices=["none", "bucket_view", "static_graph"], default="none")
    parser.add_argument("--path", choices=["wrapper", "module"], default="wrapper")
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    with process_group() as rank:
        torch.manual_seed(1)
        model = DistributedDataParallel(
            AdaptedNet(),
            gradient_as_bucket_view=args.option == "bucket_view",
            static_graph=args.option == "static_graph",
        )
        trainable = [p for p in model.parameters() if p.requires_grad]
        optimizer = torch.optim.SGD(trainable, lr=0.5)
        for step in range(args.steps):
            x, y = batch(rank, step)
            optimizer.zero_grad()
            logits = model(x) if args.path == "wrapper" else model.module(x)
            loss = cross_entropy(logits, y)
            loss.backward()
            optimizer.step()
            log(step, loss)


if __name__ == "__main__":
    main()
