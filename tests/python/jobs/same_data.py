# SPDX-License-Identifier: Apache-2.0
"""A sampler was forgotten: every rank trains on the batches of rank 0."""

import argparse

import torch
from tiny import batch, log, make_net, process_group
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--path", choices=["wrapper", "module"], default="wrapper")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    with process_group() as rank:
        model = DistributedDataParallel(make_net(dropout=args.dropout))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        torch.manual_seed(1000 + rank)  # what dropout draws from
        for step in range(args.steps):
            x, y = batch(0, step)
            optimizer.zero_grad()
            loss = cross_entropy(model(x) if args.path == "wrapper" else model.module(x), y)
            loss.backward()
            optimizer.step()
            log(step, loss)


if __name__ == "__main__":
    main()
