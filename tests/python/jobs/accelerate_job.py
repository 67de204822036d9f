# SPDX-License-Identifier: Apache-2.0
"""A loop with Hugging Face accelerate: prepare, accumulate, clip."""

import argparse

import torch
from accelerate import Accelerator
from tiny import batch, log, make_net
from torch.nn.functional import cross_entropy


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--path", choices=["wrapper", "unwrapped"], default="wrapper")
    parser.add_argument("--micro-steps", type=int, default=1)
    parser.add_argument("--clip", type=float)
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=args.micro_steps)
    net = make_net()
    model, optimizer = accelerator.prepare(net, torch.optim.AdamW(net.parameters(), lr=0.01))
    forward = model if args.path == "wrapper" else accelerator.unwrap_model(model)
    for number in range(args.steps * args.micro_steps):
        step, micro = divmod(number, args.micro_steps)
        x, y = batch(accelerator.process_index, step, micro)
        with accelerator.accumulate(model):
            loss = cross_entropy(forward(x), y)
            accelerator.backward(loss)
            if accelerator.sync_gradients and args.clip is not None:
                accelerator.clip_grad_norm_(model.parameters(), args.clip)
            optimizer.step()
            optimizer.zero_grad()
        log(step, loss)
    accelerator.end_training()


if __name__ == "__main__":
    main()
