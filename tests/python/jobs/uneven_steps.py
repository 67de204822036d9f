# SPDX-License-Identifier: Apache-2.0
"""Accumulation over uneven numbers of batches: a rank with a remainder steps once more."""

import argparse
from contextlib import nullcontext

import torch
from tiny import batch, log, make_net, process_group
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--remainder", choices=["drop", "step"], default="drop")
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    with process_group() as rank:
        model = DistributedDataParallel(make_net())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        batches = 2 * args.steps + (1 if rank == 0 else 0)
        for number in range(batches):
            x, y = batch(rank, number)
            full = number % 2 == 1
            with nullcontext() if full else model.no_sync():
                loss = cross_entropy(model(x), y)
                loss.backward()
            if full or (args.remainder == "step" and number == batches - 1):
                optimizer.step()
                optimizer.zero_grad()
                log(number // 2, loss)


if __name__ == "__main__":
    main()
