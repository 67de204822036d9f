# SPDX-License-Identifier: Apache-2.0
"""Two wrapped networks of one class, one loss, two optimizers."""

import argparse

import torch
from tiny import batch, log, make_net, process_group
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--second", choices=["wrapper", "module"], default="wrapper")
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    with process_group() as rank:
        first, second = (DistributedDataParallel(make_net(seed)) for seed in (1, 2))
        optimizers = [
            torch.optim.SGD(first.parameters(), lr=0.1),
            torch.optim.AdamW(second.parameters(), lr=0.01),
        ]
        teacher = second if args.second == "wrapper" else second.module
        for step in range(args.steps):
            x, y = batch(rank, step)
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss = cross_entropy(first(x) + teacher(x), y)
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            log(step, loss)


if __name__ == "__main__":
    main()
