# SPDX-License-Identifier: Apache-2.0
"""Clipped policy gradients: tokens and old log-probs are made first, then new ones, one optimizer
step an epoch."""

import argparse

import gradcheck
import torch
from tiny import FEATURES, HIDDEN, log, process_group
from torch import Tensor, nn
from torch.nn.functional import log_softmax
from torch.nn.parallel import DistributedDataParallel

ROWS, TOKENS, VOCABULARY, CLIP = 32, 16, 1024, 0.2


def make_policy(dropout: float) -> nn.Module:
    torch.manual_seed(1)
    head = nn.Linear(HIDDEN, VOCABULARY)
    nn.init.normal_(head.weight, std=2)
    return nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.Tanh(), nn.Dropout(dropout), head)


def batch(rank: int, step: int) -> tuple[Tensor, Tensor, Tensor]:
    """Contexts, which of their tokens count, and an advantage a row."""
    generator = torch.Generator().manual_seed(1000 * rank + step)
    x = torch.randn(ROWS, TOKENS, FEATURES, generator=generator)
    lengths = torch.randint(TOKENS // 2, TOKENS + 1, (ROWS, 1), generator=generator)
    return x, torch.arange(TOKENS) < lengths, torch.randn(ROWS, 1, generator=generator)


def picked(logits: Tensor, tokens: Tensor) -> Tensor:
    return log_softmax(logits, dim=-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)


class Trainer:
    def __init__(self, args: argparse.Namespace, rank: int) -> None:
        self.args = args
        self.rank = rank
        self.policy = DistributedDataParallel(make_policy(args.dropout))
        self.optimizer = torch.optim.SGD(self.policy.parameters(), lr=args.lr)

    def logits(self, x: Tensor) -> Tensor:
        logits = self.policy(x)
        return logits.bfloat16() if self.args.model == "bf16" else logits

    @torch.no_grad()
    def rollout(self, x: Tensor, step: int) -> tuple[Tensor, Tensor]:
        self.policy.eval()
        logits = self.logits(x).float()
        self.policy.train()
        generator = torch.Generator().manual_seed(7000 + 1000 * self.rank + step)
        flat = logits.softmax(-1).flatten(0, 1)
        tokens = torch.multinomial(flat, 1, generator=generator).view(ROWS, TOKENS)
        old = picked(logits, tokens)
        gradcheck.log_probs(old=old)
        return tokens, old

    def new_log_probs(self, x: Tensor, tokens: Tensor) -> Tensor:
        logits = self.logits(x)
        return picked(logits if self.args.softmax == "as_it_is" else logits.float(), tokens)

    def step(self, step: int) -> None:
        x, mask, advantages = batch(self.rank, step)
        tokens, old = self.rollout(x, step)
        for _ in range(self.args.epochs):
            new = self.new_log_probs(x, tokens)
            if self.args.old == "detached":
                old = new.detach()
                gradcheck.log_probs(old=old)
            gradcheck.log_probs(new=new, mask=mask, token_ids=tokens)
            ratio = torch.exp(new.float() - old)
            clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
            gain = torch.minimum(ratio * advantages, clipped * advantages)
            loss = -(gain * mask).sum() / mask.sum()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            log(step, loss)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--softmax", choices=["float", "as_it_is"], default="float")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--old", choices=["rollout", "detached"], default="rollout")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--lr", type=float, default=0.05)
    args = parser.parse_args()
    with process_group() as rank:
        trainer = Trainer(args, rank)
        for step in range(2):
            trainer.step(step)


if __name__ == "__main__":
    main()
