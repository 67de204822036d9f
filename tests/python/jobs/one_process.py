# SPDX-License-Identifier: Apache-2.0
"""No process group and no wrapper: a training loop on one process."""

import argparse

import torch
from tiny import batch, log, make_net
from torch.nn.functional import cross_entropy


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--micro-steps", type=int, default=1)
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    net = make_net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(args.steps):
        optimizer.zero_grad()
        total = torch.zeros(())
        for micro in range(args.micro_steps):
            x, y = batch(0, step, micro)
            loss = cross_entropy(net(x), y) / args.micro_steps
            loss.backward()
            total += loss.detach()
        optimizer.step()
        log(step, total)


if __name__ == "__main__":
    main()
