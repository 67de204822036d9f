# SPDX-License-Identifier: Apache-2.0
"""Gradient accumulation under DistributedDataParallel, with no_sync used in several ways."""

import argparse
from contextlib import nullcontext

import torch
from tiny import batch, log, make_net, process_group
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def micro_step(
    model: DistributedDataParallel,
    data: tuple[Tensor, Tensor],
    no_sync: str,
    last: bool,
    count: int,
) -> Tensor:
    x, y = data
    whole = no_sync == "every" or (no_sync == "all_but_last" and not last)
    with model.no_sync() if whole else nullcontext():
        loss = cross_entropy(model(x), y) / count
        if no_sync == "late_flag":
            model.require_backward_grad_sync = last
        with model.no_sync() if no_sync == "backward_only" and not last else nullcontext():
            loss.backward()
    return loss.detach()


def main() -> None:
    parser = argparse.ArgumentParser()
    ways = ["all_but_last", "never", "every", "backward_only", "late_flag"]
    parser.add_argument("--no-sync", choices=ways, default="all_but_last")
    parser.add_argument("--micro-steps", type=int, default=3)
    parser.add_argument("--bucket-view", action="store_true")
    parser.add_argument("--clip", type=float)
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    with process_group() as rank:
        model = DistributedDataParallel(make_net(), gradient_as_bucket_view=args.bucket_view)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(args.steps):
            optimizer.zero_grad()
            if args.no_sync == "late_flag":
                model.require_backward_grad_sync = False
            total = torch.zeros(())
            for micro in range(args.micro_steps):
                last = micro == args.micro_steps - 1
                data = batch(rank, step, micro)
                total += micro_step(model, data, args.no_sync, last, args.micro_steps)
            if args.clip is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            optimizer.step()
            log(step, total)


if __name__ == "__main__":
    main()
