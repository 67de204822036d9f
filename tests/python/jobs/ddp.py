# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel, with the loss computed through the wrapper or past it."""

import argparse

import torch
from tiny import Net, batch, log, make_net, process_group
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

OPTIONS = {
    "find_unused": "find_unused_parameters",
    "bucket_view": "gradient_as_bucket_view",
    "static_graph": "static_graph",
}


def through_children(net: Net, x: Tensor) -> Tensor:
    """What a fused loss does: the body, then the head's weight by hand."""
    hidden = torch.tanh(net.norm(net.body(x)))
    return hidden @ net.head.weight.T + net.head.bias


def forward(model: DistributedDataParallel, x: Tensor, path: str) -> Tensor:
    if path == "stray_arm":
        model(x)
    if path.startswith("rollout"):
        with torch.no_grad():
            model(x)
    if path == "children":
        return through_children(model.module, x)
    return model(x) if path in ("wrapper", "rollout_wrapper") else model.module(x)


def main() -> None:
    parser = argparse.ArgumentParser()
    paths = ["wrapper", "module", "stray_arm", "rollout_wrapper", "rollout_module", "children"]
    parser.add_argument("--path", choices=paths, default="wrapper")
    parser.add_argument("--option", choices=OPTIONS, action="append", default=[])
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float64"], default="float32")
    parser.add_argument("--clip", type=float)
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    with process_group() as rank:
        net = make_net().to(getattr(torch, args.dtype))
        model = DistributedDataParallel(net, **{OPTIONS[name]: True for name in args.option})
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        for step in range(args.steps):
            x, y = batch(rank, step)
            optimizer.zero_grad()
            loss = cross_entropy(forward(model, x, args.path), y)
            loss.backward()
            if args.clip is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            optimizer.step()
            log(step, loss)


if __name__ == "__main__":
    main()
