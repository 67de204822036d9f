# SPDX-License-Identifier: Apache-2.0
"""An ordinary DDP job of about 105 million parameters that prints how long each step took."""

import argparse
import resource
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def make_model(width: int, depth: int) -> nn.Module:
    """`depth` blocks of two square matrices: 2·depth·width² parameters and some."""
    layers: list[nn.Module] = []
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.LayerNorm(width)]
    return nn.Sequential(*layers)


def compare_by_hand(model: nn.Module) -> None:
    """What people paste: every rank gathers every gradient and compares."""
    for parameter in model.parameters():
        if parameter.grad is None:
            continue
        copies = [torch.empty_like(parameter.grad) for _ in range(dist.get_world_size())]
        dist.all_gather(copies, parameter.grad)
        assert all(torch.equal(copies[0], other) for other in copies[1:])


def main() -> None:
    """Prints `step S seconds T` for every step and `rss KIB` at the end, on rank 0."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--depth", type=int, default=50)
    parser.add_argument("--by-hand", type=int, default=0, metavar="K", help="every K-th step")
    arguments = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(make_model(arguments.width, arguments.depth))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    torch.manual_seed(1 + dist.get_rank())
    for step in range(arguments.steps):
        batch = torch.randn(64, arguments.width)
        dist.barrier()
        start = time.perf_counter()
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        if arguments.by_hand and step % arguments.by_hand == 0:
            compare_by_hand(model)
        optimizer.step()
        dist.barrier()
        if dist.get_rank() == 0:
            print(f"step {step} seconds {time.perf_counter() - start:.6f}", flush=True)
    if dist.get_rank() == 0:
        print(f"rss {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
