# SPDX-License-Identifier: Apache-2.0
"""A GAN: each side has a wrapper and an optimizer, and each step updates both."""

import argparse

import torch
from tiny import log, process_group
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.nn.parallel import DistributedDataParallel

NOISE, PIXELS, ROWS = 4, 6, 4


class Generator(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(NOISE, 8), nn.Tanh(), nn.Linear(8, PIXELS))


class Discriminator(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(PIXELS, 8), nn.Tanh(), nn.Linear(8, 1))


def draw(rank: int, step: int) -> tuple[Tensor, Tensor]:
    """Real pixels and noise."""
    source = torch.Generator().manual_seed(1000 * step + rank)
    return (
        torch.randn(ROWS, PIXELS, generator=source) + 1,
        torch.randn(ROWS, NOISE, generator=source),
    )


def loss_of(score: Tensor, label: float) -> Tensor:
    return binary_cross_entropy_with_logits(score, torch.full_like(score, label))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--generator", choices=["wrapper", "module"], default="wrapper")
    parser.add_argument("--discriminator", choices=["wrapper", "module"], default="module")
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    with process_group() as rank:
        torch.manual_seed(1)
        generator = DistributedDataParallel(Generator())
        discriminator = DistributedDataParallel(Discriminator())
        make = generator if args.generator == "wrapper" else generator.module
        # Only the generator learns from this score, so that either way is right.
        score = discriminator if args.discriminator == "wrapper" else discriminator.module
        g_optimizer = torch.optim.Adam(generator.parameters(), lr=0.01)
        d_optimizer = torch.optim.Adam(discriminator.parameters(), lr=0.01)
        for step in range(args.steps):
            real, noise = draw(rank, step)
            with torch.no_grad():
                fake = generator(noise)
            d_optimizer.zero_grad()
            d_loss = loss_of(discriminator(torch.cat([real, fake]))[:ROWS], 1.0)
            d_loss = d_loss + loss_of(discriminator(torch.cat([real, fake]))[ROWS:], 0.0)
            d_loss.backward()
            d_optimizer.step()

            g_optimizer.zero_grad()
            g_loss = loss_of(score(make(noise)), 1.0)
            g_loss.backward()
            g_optimizer.step()
            log(step, d_loss + g_loss)


if __name__ == "__main__":
    main()
