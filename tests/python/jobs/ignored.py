# SPDX-License-Identifier: Apache-2.0
"""A parameter that the wrapper was told to ignore, reduced by hand or forgotten."""

import argparse

import torch
import torch.distributed as dist
from tiny import batch, log, make_net, process_group
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--by-hand", action="store_true")
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    with process_group() as rank:
        net = make_net()
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(net, ["head.weight"])
        model = DistributedDataParallel(net)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(args.steps):
            x, y = batch(rank, step)
            optimizer.zero_grad()
            loss = cross_entropy(model(x), y)
            loss.backward()
            if args.by_hand:
                dist.all_reduce(net.head.weight.grad)
                net.head.weight.grad.div_(dist.get_world_size())
            optimizer.step()
            log(step, loss)


if __name__ == "__main__":
    main()
