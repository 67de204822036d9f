# SPDX-License-Identifier: Apache-2.0
"""LBFGS: forward and backward run inside the optimizer's step, several times."""

import argparse

import torch
from tiny import batch, log, make_net, process_group
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--path", choices=["wrapper", "module"], default="wrapper")
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    with process_group() as rank:
        model = DistributedDataParallel(make_net())
        optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=2)
        forward = model if args.path == "wrapper" else model.module
        for step in range(args.steps):
            x, y = batch(rank, step)

            def closure(x: Tensor = x, y: Tensor = y) -> Tensor:
                optimizer.zero_grad()
                loss = cross_entropy(forward(x), y)
                loss.backward()
                return loss

            log(step, optimizer.step(closure))


if __name__ == "__main__":
    main()
