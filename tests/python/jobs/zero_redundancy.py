# SPDX-License-Identifier: Apache-2.0
"""ZeroRedundancyOptimizer: each rank steps its share of the parameters, then broadcasts them."""

import argparse

import torch
from tiny import batch, log, make_net, process_group
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--path", choices=["wrapper", "module"], default="wrapper")
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    with process_group() as rank:
        model = DistributedDataParallel(make_net())
        optimizer = ZeroRedundancyOptimizer(
            model.parameters(), optimizer_class=torch.optim.AdamW, lr=0.01
        )
        for step in range(args.steps):
            x, y = batch(rank, step)
            optimizer.zero_grad()
            loss = cross_entropy(model(x) if args.path == "wrapper" else model.module(x), y)
            loss.backward()
            optimizer.step()
            log(step, loss)


if __name__ == "__main__":
    main()
