# SPDX-License-Identifier: Apache-2.0
"""One rank fails between its forward and its backward: it raises, dies, leaves or hangs."""

import argparse
import os
import signal
import time

import torch
from tiny import batch, log, make_net, process_group
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def fail(how: str) -> None:
    if how == "raise":
        raise ValueError("the loss of this batch makes no sense")
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exit":
        os._exit(0)
    if how == "hang":
        time.sleep(600)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--how", choices=["raise", "kill", "exit", "hang"], required=True)
    parser.add_argument("--rank", type=int, default=1)
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    with process_group() as rank:
        model = DistributedDataParallel(make_net())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(args.steps):
            x, y = batch(rank, step)
            optimizer.zero_grad()
            loss = cross_entropy(model(x), y)
            if (rank, step) == (args.rank, args.step):
                fail(args.how)
            loss.backward()
            optimizer.step()
            log(step, loss)


if __name__ == "__main__":
    main()
