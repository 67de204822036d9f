# SPDX-License-Identifier: Apache-2.0
"""Ranks with uneven inputs: rank 0 has one batch more than the others."""

import argparse
from contextlib import nullcontext

import torch
from tiny import batch, log, make_net, process_group
from torch.distributed.algorithms.join import Join
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-join", action="store_true")
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    with process_group() as rank:
        model = DistributedDataParallel(make_net())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with nullcontext() if args.no_join else Join([model]):
            for step in range(args.steps if rank == 0 else args.steps - 1):
                x, y = batch(rank, step)
                optimizer.zero_grad()
                loss = cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
                log(step, loss)


if __name__ == "__main__":
    main()
