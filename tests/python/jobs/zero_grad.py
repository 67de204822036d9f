# SPDX-License-Identifier: Apache-2.0
"""Gradients are cleared before every step, or never."""

import argparse

import torch
from tiny import batch, log, make_net, process_group
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clear", choices=["to_none", "to_zero", "never"], default="to_none")
    parser.add_argument("--bucket-view", action="store_true")
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    with process_group() as rank:
        model = DistributedDataParallel(make_net(), gradient_as_bucket_view=args.bucket_view)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(args.steps):
            x, y = batch(rank, step)
            if args.clear != "never":
                optimizer.zero_grad(set_to_none=args.clear == "to_none")
            loss = cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            log(step, loss)


if __name__ == "__main__":
    main()
