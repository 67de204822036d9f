# SPDX-License-Identifier: Apache-2.0
"""Two branches of which a forward takes one: by rank, by micro-step, or always the first."""

import argparse
from contextlib import nullcontext

import torch
from tiny import CLASSES, FEATURES, HIDDEN, batch, log, process_group
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


class BranchedNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(FEATURES, HIDDEN)
        self.branches = nn.ModuleList(nn.Linear(HIDDEN, CLASSES) for _ in range(2))

    def forward(self, x: Tensor, branch: int) -> Tensor:
        return self.branches[branch](torch.tanh(self.body(x)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--branch", choices=["rank", "micro", "first"], default="rank")
    parser.add_argument("--find-unused", action="store_true")
    parser.add_argument("--no-sync", action="store_true", help="but for the last micro-step")
    parser.add_argument("--micro-steps", type=int, default=1)
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    with process_group() as rank:
        torch.manual_seed(1)
        model = DistributedDataParallel(BranchedNet(), find_unused_parameters=args.find_unused)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(args.steps):
            optimizer.zero_grad()
            total = torch.zeros(())
            for micro in range(args.micro_steps):
                x, y = batch(rank, step, micro)
                branch = {"rank": rank, "micro": micro, "first": 0}[args.branch]
                last = micro == args.micro_steps - 1
                with model.no_sync() if args.no_sync and not last else nullcontext():
                    loss = cross_entropy(model(x, branch % 2), y)
                    loss.backward()
                total += loss.detach()
            optimizer.step()
            log(step, total)


if __name__ == "__main__":
    main()
