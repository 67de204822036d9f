# SPDX-License-Identifier: Apache-2.0
"""A policy-gradient step: old log-probs under bfloat16 autocast, new ones in float32."""

import argparse

import torch
from tiny import FEATURES, HIDDEN, log, process_group
from torch import Tensor, nn
from torch.nn.functional import log_softmax
from torch.nn.parallel import DistributedDataParallel

VOCABULARY = 1024


def make_policy() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, VOCABULARY))


def batch(rank: int, step: int) -> tuple[Tensor, Tensor, Tensor]:
    """Prompts, sampled tokens and advantages."""
    generator = torch.Generator().manual_seed(1000 * rank + step)
    x = torch.randn(4, FEATURES, generator=generator)
    tokens = torch.randint(VOCABULARY, (4, 1), generator=generator)
    return x, tokens, torch.randn(4, generator=generator)


def old_log_probs(policy: nn.Module, x: Tensor, tokens: Tensor, coarse: bool) -> Tensor:
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=coarse):
        return log_softmax(policy(x), dim=-1).gather(-1, tokens).squeeze(-1)


def new_log_probs(policy: nn.Module, x: Tensor, tokens: Tensor) -> Tensor:
    return log_softmax(policy(x).float(), dim=-1).gather(-1, tokens).squeeze(-1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--old", choices=["bf16", "f32"], default="bf16")
    args = parser.parse_args()
    with process_group() as rank:
        policy = DistributedDataParallel(make_policy())
        optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
        for step in range(2):
            x, tokens, advantages = batch(rank, step)
            old = old_log_probs(policy, x, tokens, args.old == "bf16")
            ratio = torch.exp(new_log_probs(policy, x, tokens) - old)
            loss = -(ratio * advantages).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            log(step, loss)


if __name__ == "__main__":
    main()
