# SPDX-License-Identifier: Apache-2.0
"""Data parallelism by hand: no wrapper, gradients are all-reduced after the backward."""

import argparse
from collections.abc import Iterable

import torch
import torch.distributed as dist
from tiny import batch, log, make_net, process_group
from torch import Tensor, nn
from torch.nn.functional import cross_entropy


def in_one_piece(gradients: list[Tensor], world: int) -> None:
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    flat.div_(world)
    for gradient, piece in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
        gradient.copy_(piece.view_as(gradient))


def reduce_gradients(parameters: Iterable[nn.Parameter], how: str) -> None:
    gradients = [p.grad for p in parameters if p.grad is not None]
    world = dist.get_world_size()
    if how == "flat":
        in_one_piece(gradients, world)
        return
    if how == "forget_last":
        gradients = gradients[:-1]
    for gradient in gradients:
        dist.all_reduce(gradient, dist.ReduceOp.AVG if how == "avg" else dist.ReduceOp.SUM)
        if how in ("mean", "forget_last"):
            gradient.div_(world)


def main() -> None:
    parser = argparse.ArgumentParser()
    ways = ["mean", "avg", "sum", "flat", "forget_last"]
    parser.add_argument("--reduce", choices=ways, default="mean")
    parser.add_argument("--scale-loss", type=float, default=1.0)
    parser.add_argument("--clip", choices=["none", "before", "after"], default="none")
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    with process_group() as rank:
        net = make_net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(args.steps):
            x, y = batch(rank, step)
            optimizer.zero_grad()
            loss = cross_entropy(net(x), y) * args.scale_loss
            loss.backward()
            if args.clip == "before":
                nn.utils.clip_grad_norm_(net.parameters(), 0.1)
            reduce_gradients(net.parameters(), args.reduce)
            if args.clip == "after":
                nn.utils.clip_grad_norm_(net.parameters(), 0.1)
            optimizer.step()
            log(step, loss)


if __name__ == "__main__":
    main()
