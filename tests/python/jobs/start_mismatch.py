# SPDX-License-Identifier: Apache-2.0
"""A layer is initialised from the rank's own seed, before or after wrapping."""

import argparse

import torch
from tiny import Net, batch, log, make_net, process_group
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def initialise_head(net: Net, rank: int) -> None:
    torch.manual_seed(100 + rank)
    torch.nn.init.normal_(net.head.weight, std=0.1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--when", choices=["before", "after"], default="before", help="wrapping")
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    with process_group() as rank:
        net = make_net()
        if args.when == "before":
            initialise_head(net, rank)
        model = DistributedDataParallel(net)
        if args.when == "after":
            initialise_head(net, rank)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(args.steps):
            x, y = batch(rank, step)
            optimizer.zero_grad()
            loss = cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            log(step, loss)


if __name__ == "__main__":
    main()
