# SPDX-License-Identifier: Apache-2.0
"""What changes after the model was wrapped: layers unfrozen, replaced or added."""

import argparse

import torch
from tiny import CLASSES, FEATURES, Net, batch, log, make_net, process_group
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


class ExtendedNet(Net):
    """Room for a shortcut that may come later."""

    def __init__(self) -> None:
        super().__init__()
        self.shortcut: nn.Module | None = None

    def forward(self, x: Tensor) -> Tensor:
        logits = super().forward(x)
        return logits if self.shortcut is None else logits + self.shortcut(x)


def change(net: ExtendedNet, what: str) -> None:
    if what == "unfreeze":
        net.body.requires_grad_(True)
        net.norm.requires_grad_(True)
    elif what == "replace":
        net.head.weight = nn.Parameter(net.head.weight.detach().clone())
    elif what == "add":
        net.shortcut = nn.Linear(FEATURES, CLASSES, bias=False)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--what", choices=["unfreeze", "replace", "add"], default="unfreeze")
    parser.add_argument("--when", choices=["before", "after"], default="before", help="wrapping")
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    with process_group() as rank:
        torch.manual_seed(1)
        net = ExtendedNet()
        net.load_state_dict(make_net().state_dict())
        if args.what == "unfreeze":
            net.body.requires_grad_(False)
            net.norm.requires_grad_(False)
        if args.when == "before":
            change(net, args.what)
        model = DistributedDataParallel(net, find_unused_parameters=args.what == "replace")
        if args.when == "after":
            change(net, args.what)
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
