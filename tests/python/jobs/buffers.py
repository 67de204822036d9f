# SPDX-License-Identifier: Apache-2.0
"""Batch norm's running statistics, with the wrapper broadcasting them or not."""

import argparse

import torch
from tiny import CLASSES, FEATURES, HIDDEN, batch, log, process_group
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-broadcast", action="store_true")
    parser.add_argument("--path", choices=["wrapper", "module"], default="wrapper")
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    with process_group() as rank:
        torch.manual_seed(1)
        net = nn.Sequential(
            nn.Linear(FEATURES, HIDDEN),
            nn.BatchNorm1d(HIDDEN),
            nn.Tanh(),
            nn.Linear(HIDDEN, CLASSES),
        )
        model = DistributedDataParallel(net, broadcast_buffers=not args.no_broadcast)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(args.steps):
            x, y = batch(rank, step)
            optimizer.zero_grad()
            loss = cross_entropy(model(x) if args.path == "wrapper" else model.module(x), y)
            loss.backward()
            optimizer.step()
            log(step, loss)


if __name__ == "__main__":
    main()
