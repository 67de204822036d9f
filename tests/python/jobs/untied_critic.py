# SPDX-License-Identifier: Apache-2.0
"""Actor and critic share one loss; the critic inherits a head that it never calls."""

import argparse

import torch
from tiny import FEATURES, batch, log, process_group
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss
from torch.nn.parallel import DistributedDataParallel


class Actor(nn.Module):
    """The head is the embedding, unless it is untied."""

    def __init__(self, untied: bool = False) -> None:
        super().__init__()
        self.embed = nn.Linear(FEATURES, FEATURES, bias=False)
        self.body = nn.Linear(FEATURES, FEATURES)
        self.lm_head = nn.Linear(FEATURES, FEATURES, bias=False)
        if not untied:
            self.lm_head.weight = self.embed.weight

    def features(self, x: Tensor) -> Tensor:
        return torch.tanh(self.body(torch.tanh(self.embed(x))))

    def forward(self, x: Tensor) -> Tensor:
        return self.lm_head(self.features(x))


class Critic(Actor):
    def __init__(self, untied: bool) -> None:
        super().__init__(untied)
        self.value_head = nn.Linear(FEATURES, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.value_head(self.features(x)).squeeze(-1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--untied", action="store_true")
    parser.add_argument("--find-unused", action="store_true")
    parser.add_argument("--critic", choices=["wrapper", "module"], default="wrapper")
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    with process_group() as rank:
        torch.manual_seed(1)
        actor = DistributedDataParallel(Actor())
        critic = DistributedDataParallel(
            Critic(args.untied), find_unused_parameters=args.find_unused
        )
        optimizers = [torch.optim.AdamW(m.parameters(), lr=0.01) for m in (actor, critic)]
        value_of = critic if args.critic == "wrapper" else critic.module
        for step in range(args.steps):
            x, y = batch(rank, step)
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss = cross_entropy(actor(x), y) + mse_loss(value_of(x), y.float())
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            log(step, loss)


if __name__ == "__main__":
    main()
