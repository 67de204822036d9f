# SPDX-License-Identifier: Apache-2.0
"""Starts its own ranks with torch.multiprocessing."""

import argparse
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from tiny import batch, make_net
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def train(rank: int, world: int, port: int, path: str, steps: int) -> None:
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    model = DistributedDataParallel(make_net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        x, y = batch(rank, step)
        optimizer.zero_grad()
        loss = cross_entropy(model(x) if path == "wrapper" else model.module(x), y)
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(f"step {step} loss {loss.item()!r}", flush=True)
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--path", choices=["wrapper", "module"], default="wrapper")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    mp.spawn(train, (args.ranks, free_port(), args.path, args.steps), nprocs=args.ranks)


if __name__ == "__main__":
    main()
