# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel with a communication hook: stock ones and the program's own."""

import argparse

import torch
import torch.distributed as dist
from tiny import batch, log, make_net, process_group
from torch.distributed.algorithms.ddp_comm_hooks import debugging_hooks, default_hooks
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power_sgd
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def sum_hook(state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Adds up and forgets that buckets come undivided."""
    work = dist.all_reduce(bucket.buffer(), async_op=True)
    return work.get_future().then(lambda done: done.value()[0])


def mean_hook(state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    work = dist.all_reduce(bucket.buffer().div_(dist.get_world_size()), async_op=True)
    return work.get_future().then(lambda done: done.value()[0])


def register(model: DistributedDataParallel, name: str) -> None:
    if name == "power_sgd":
        state = power_sgd.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
        model.register_comm_hook(state, power_sgd.powerSGD_hook)
        return
    hooks = {
        "allreduce": default_hooks.allreduce_hook,
        "fp16": default_hooks.fp16_compress_hook,
        "noop": debugging_hooks.noop_hook,
        "own_sum": sum_hook,
        "own_mean": mean_hook,
    }
    model.register_comm_hook(None, hooks[name])


def main() -> None:
    parser = argparse.ArgumentParser()
    names = ["none", "allreduce", "fp16", "power_sgd", "noop", "own_sum", "own_mean"]
    parser.add_argument("--hook", choices=names, default="none")
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    with process_group() as rank:
        model = DistributedDataParallel(make_net())
        if args.hook != "none":
            register(model, args.hook)
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
