# SPDX-License-Identifier: Apache-2.0
"""Gradients come from backward(), or from torch.autograd.grad() and are assigned by hand."""

import argparse

import torch
from tiny import batch, log, make_net, process_group
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--how", choices=["backward", "grad"], default="backward")
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    with process_group() as rank:
        model = DistributedDataParallel(make_net())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(args.steps):
            x, y = batch(rank, step)
            optimizer.zero_grad()
            loss = cross_entropy(model(x), y)
            if args.how == "backward":
                loss.backward()
            else:
                parameters = list(model.parameters())
                gradients = torch.autograd.grad(loss, parameters)
                for parameter, gradient in zip(parameters, gradients, strict=True):
                    parameter.grad = gradient
            optimizer.step()
            log(step, loss)


if __name__ == "__main__":
    main()
