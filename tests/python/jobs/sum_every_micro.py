# SPDX-License-Identifier: Apache-2.0
"""Accumulation with a hand-made all-reduce: once at the end, or after every micro-step."""

import argparse

import torch
import torch.distributed as dist
from tiny import batch, log, make_net, process_group
from torch import nn
from torch.nn.functional import cross_entropy


def reduce_gradients(net: nn.Module, divide: bool) -> None:
    for parameter in net.parameters():
        dist.all_reduce(parameter.grad)
        if divide:
            parameter.grad.div_(dist.get_world_size())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--when", choices=["last", "every"], default="last")
    parser.add_argument("--divide", action="store_true", help="mean instead of sum")
    parser.add_argument("--micro-steps", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    with process_group() as rank:
        net = make_net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        share = args.micro_steps * (1 if args.divide else dist.get_world_size())
        for step in range(args.steps):
            optimizer.zero_grad()
            total = torch.zeros(())
            for micro in range(args.micro_steps):
                x, y = batch(rank, step, micro)
                loss = cross_entropy(net(x), y) / share
                loss.backward()
                total += loss.detach()
                if args.when == "every" or micro == args.micro_steps - 1:
                    reduce_gradients(net, args.divide)
            optimizer.step()
            log(step, total)


if __name__ == "__main__":
    main()
