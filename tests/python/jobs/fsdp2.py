# SPDX-License-Identifier: Apache-2.0
"""Fully sharded data parallelism, the second kind (fully_shard)."""

import argparse

import torch
from tiny import batch, log, make_net, process_group
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    with process_group() as rank:
        world = torch.distributed.get_world_size()
        net = fully_shard(make_net(), mesh=init_device_mesh("cpu", (world,)))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(args.steps):
            x, y = batch(rank, step)
            optimizer.zero_grad()
            loss = cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            log(step, loss)


if __name__ == "__main__":
    main()
