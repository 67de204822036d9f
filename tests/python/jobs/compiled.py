# SPDX-License-Identifier: Apache-2.0
"""torch.compile around DistributedDataParallel, or inside it, and the loss computed past both."""

import argparse

import torch
from tiny import batch, log, make_net, process_group
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", choices=["eager", "aot_eager", "inductor"], default="eager")
    parser.add_argument("--compile", choices=["wrapper", "net"], default="wrapper")
    parser.add_argument("--path", choices=["wrapper", "module"], default="wrapper")
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    with process_group() as rank:
        net = make_net()
        if args.compile == "net":
            net = torch.compile(net, backend=args.backend)
        model = DistributedDataParallel(net)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        forward = model if args.path == "wrapper" else model.module
        if args.compile == "wrapper":
            forward = torch.compile(forward, backend=args.backend)
        for step in range(args.steps):
            x, y = batch(rank, step)
            optimizer.zero_grad()
            loss = cross_entropy(forward(x), y)
            loss.backward()
            optimizer.step()
            log(step, loss)


if __name__ == "__main__":
    main()
