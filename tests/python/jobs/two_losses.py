# SPDX-License-Identifier: Apache-2.0
"""Two losses on one forward: one summed backward, or a backward for each loss."""

import argparse

import torch
from tiny import batch, log, make_net, process_group
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backward", choices=["summed", "separate"], default="summed")
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    with process_group() as rank:
        model = DistributedDataParallel(make_net())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(args.steps):
            x, y = batch(rank, step)
            optimizer.zero_grad()
            logits = model(x)
            losses = [cross_entropy(logits, y), logits.square().mean()]
            if args.backward == "summed":
                sum(losses, torch.zeros(())).backward()
            else:
                losses[0].backward(retain_graph=True)
                losses[1].backward()
            optimizer.step()
            log(step, losses[0] + losses[1])


if __name__ == "__main__":
    main()
