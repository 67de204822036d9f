# SPDX-License-Identifier: Apache-2.0
"""Two experts behind a router whose balancing bias is a buffer, moved by token counts."""

import argparse

import torch
import torch.distributed as dist
from tiny import CLASSES, FEATURES, batch, log, process_group
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

EXPERTS = 2


class RoutedNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(FEATURES, EXPERTS)
        self.experts = nn.ModuleList(nn.Linear(FEATURES, CLASSES) for _ in range(EXPERTS))
        self.register_buffer("balance", torch.zeros(EXPERTS))
        self.counts = torch.zeros(EXPERTS)

    def forward(self, x: Tensor) -> Tensor:
        gates = torch.softmax(self.router(x) + self.balance, dim=-1)
        self.counts = gates.detach().sum(0)
        outputs = torch.stack([expert(x) for expert in self.experts], dim=1)
        return (gates.unsqueeze(-1) * outputs).sum(1)

    def rebalance(self, counts: Tensor) -> None:
        self.balance += 0.1 * (counts.mean() - counts)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--counts", choices=["reduced", "local"], default="reduced")
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    with process_group() as rank:
        torch.manual_seed(1)
        net = RoutedNet()
        model = DistributedDataParallel(net, broadcast_buffers=False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(args.steps):
            x, y = batch(rank, step)
            optimizer.zero_grad()
            loss = cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if args.counts == "reduced":
                dist.all_reduce(net.counts)
            net.rebalance(net.counts)
            log(step, loss)


if __name__ == "__main__":
    main()
