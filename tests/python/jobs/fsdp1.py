# SPDX-License-Identifier: Apache-2.0
"""Fully sharded data parallelism, the first kind (FullyShardedDataParallel)."""

import argparse

import torch
from tiny import batch, log, make_net, process_group
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.nn.functional import cross_entropy


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--original", action="store_true", help="keep the parameters' own shapes")
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    with process_group() as rank:
        model = FullyShardedDataParallel(
            make_net(), device_id=torch.device("cpu"), use_orig_params=args.original
        )
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
