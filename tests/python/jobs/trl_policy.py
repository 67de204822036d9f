# SPDX-License-Identifier: Apache-2.0
"""TRL's policy-gradient trainers, which make old and new log-probs themselves."""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import torch
import trl
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
from trl_job import count_even_words, make_data, make_model

WORDS = 49


def make_config(args: argparse.Namespace, folder: Path) -> Any:
    return getattr(trl, f"{args.trainer.upper()}Config")(
        output_dir=str(folder / "out"),
        max_steps=2,
        per_device_train_batch_size=8,
        num_iterations=args.iterations,
        num_generations=2,
        max_completion_length=8,
        learning_rate=1e-3,
        use_cpu=True,
        ddp_backend="gloo",
        bf16=False,
        report_to="none",
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
    )


def make_policy(args: argparse.Namespace, folder: Path) -> tuple[Any, Any]:
    """Model and tokenizer."""
    path = make_model(folder / "model", WORDS)
    model = AutoModelForCausalLM.from_pretrained(path, attention_dropout=args.dropout)
    return model, PreTrainedTokenizerFast.from_pretrained(path, padding_side="left")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trainer", choices=["grpo", "rloo"], default="grpo")
    parser.add_argument("--iterations", type=int, default=1, help="over what was generated")
    parser.add_argument("--dropout", type=float, default=0.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, tokenizer = make_policy(args, folder)
        getattr(trl, f"{args.trainer.upper()}Trainer")(
            model=model,
            args=make_config(args, folder),
            train_dataset=make_data("grpo", WORDS),
            processing_class=tokenizer,
            reward_funcs=count_even_words,
        ).train()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
