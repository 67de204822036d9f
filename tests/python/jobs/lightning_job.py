# SPDX-License-Identifier: Apache-2.0
"""Lightning's automatic optimization: forward and backward run inside the optimizer's closure."""

import argparse
import tempfile
import warnings

import lightning
import torch
from lightning.pytorch.callbacks import BaseFinetuning
from tiny import batch, make_net
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

RANKS, BATCHES = 2, 1


class Module(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = make_net()

    def training_step(self, rows: list[Tensor]) -> Tensor:
        x, y = rows
        loss = cross_entropy(self.net(x), y)
        if self.global_rank == 0:
            print(f"step {self.global_step} loss {loss.item()!r}", flush=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD((p for p in self.parameters() if p.requires_grad), lr=0.1)


class Rows(Dataset):
    """Four rows a rank; the sampler deals them out."""

    def __init__(self) -> None:
        batches = [batch(rank, 0) for rank in range(RANKS)]
        self.x, self.y = (torch.cat(parts) for parts in zip(*batches, strict=True))

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index], self.y[index]


class Unfreeze(BaseFinetuning):
    """Freezes all but the head, and thaws it in the second epoch: after wrapping."""

    def freeze_before_training(self, pl_module: lightning.LightningModule) -> None:
        self.freeze([pl_module.net.body, pl_module.net.norm])

    def finetune_function(
        self, pl_module: lightning.LightningModule, epoch: int, optimizer: torch.optim.Optimizer
    ) -> None:
        if epoch == 1:
            thawed = [pl_module.net.body, pl_module.net.norm]
            self.unfreeze_and_add_param_group(thawed, optimizer, lr=0.1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--finetune", action="store_true")
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            accelerator="cpu",
            devices=RANKS,
            strategy="ddp",
            max_epochs=args.steps,
            callbacks=[Unfreeze()] if args.finetune else [],
            default_root_dir=folder,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(Module(), DataLoader(Rows(), batch_size=4))


if __name__ == "__main__":
    main()
