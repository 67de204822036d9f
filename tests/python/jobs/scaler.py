# SPDX-License-Identifier: Apache-2.0
"""A gradient scaler on the CPU: scaling, unscaling, clipping and skipped steps."""

import argparse

import torch
from tiny import batch, log, make_net, process_group
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

# Overflows in the backward of the first step; the second scale fits.
TOO_LARGE, BACKOFF = 2.0**127, 2.0**-110


def make_scaler(args: argparse.Namespace, rank: int) -> torch.amp.GradScaler:
    if args.warm_up:
        return torch.amp.GradScaler("cpu", init_scale=TOO_LARGE, backoff_factor=BACKOFF)
    scale = 1024.0 if rank == 0 or not args.uneven_scale else 512.0
    return torch.amp.GradScaler("cpu", init_scale=scale)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--path", choices=["wrapper", "module"], default="wrapper")
    parser.add_argument("--clip", type=float)
    parser.add_argument("--warm-up", action="store_true", help="the first step overflows")
    parser.add_argument("--uneven-scale", action="store_true", help="half the scale on rank 1")
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    with process_group() as rank:
        model = DistributedDataParallel(make_net())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = make_scaler(args, rank)
        for step in range(args.steps):
            x, y = batch(rank, step)
            optimizer.zero_grad()
            logits = model(x) if args.path == "wrapper" else model.module(x)
            # Weighted up, so that the largest scale overflows.
            loss = 8 * cross_entropy(logits, y)
            scaler.scale(loss).backward()
            if args.clip is not None:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            scaler.step(optimizer)
            scaler.update()
            log(step, loss)


if __name__ == "__main__":
    main()
