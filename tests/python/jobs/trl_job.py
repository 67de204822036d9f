# SPDX-License-Identifier: Apache-2.0
"""TRL's trainers on a tiny Qwen3 of 28 layers (310 tensors), made on the spot: no network."""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.update(
    HF_HUB_OFFLINE="1",
    TRANSFORMERS_OFFLINE="1",
    HF_DATASETS_OFFLINE="1",
    TOKENIZERS_PARALLELISM="0",
)
if "--compile" not in sys.argv:
    os.environ["TORCHDYNAMO_DISABLE"] = "1"  # compiling takes longer than the step

import torch
import trl
from datasets import Dataset, disable_progress_bars
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from transformers.utils import logging

ROWS = 32
SPECIAL = ["<unk>", "<pad>", "<s>", "</s>"]
# Liger's triton layers need a GPU; the fused losses do not depend on them.
LIGER = {
    name: False
    for name in ("rope", "rms_norm", "swiglu", "cross_entropy", "fused_linear_cross_entropy")
}


def make_tokenizer(word_count: int) -> PreTrainedTokenizerFast:
    vocabulary = {word: i for i, word in enumerate(SPECIAL + [f"w{i}" for i in range(word_count)])}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=words,
        unk_token="<unk>",
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
    )


def make_model(folder: Path, word_count: int) -> str:
    """A model and its tokenizer on disk: reference models are loaded by path."""
    tokenizer = make_tokenizer(word_count)
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=28,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        tie_word_embeddings=True,
        max_position_embeddings=128,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    Qwen3ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def make_data(trainer: str, word_count: int) -> Dataset:
    source = torch.Generator().manual_seed(3)

    def words(count: int) -> str:
        return " ".join(
            f"w{i}" for i in torch.randint(word_count, (count,), generator=source).tolist()
        )

    rows = [(words(5), words(6), words(7)) for _ in range(ROWS)]
    if trainer == "sft":
        return Dataset.from_list([{"text": f"{p} {a}"} for p, a, _ in rows])
    if trainer == "grpo":
        return Dataset.from_list([{"prompt": p} for p, _, _ in rows])
    if trainer == "dpo":
        return Dataset.from_list(
            [{"prompt": p, "chosen": f" {a}", "rejected": f" {b}"} for p, a, b in rows]
        )
    return Dataset.from_list(
        [
            {"prompt": p, "completion": f" {a}", "label": i % 2 == 0}
            for i, (p, a, _) in enumerate(rows)
        ]
    )


def count_even_words(completions: list[str], **_: Any) -> list[float]:
    """A reward that differs within a group."""
    return [float(sum(word[-1:] in "02468" for word in text.split())) for text in completions]


def make_config(args: argparse.Namespace, folder: Path) -> Any:
    options: dict[str, Any] = {
        "output_dir": str(folder / "out"),
        "max_steps": args.steps,
        "gradient_accumulation_steps": args.micro_steps,
        "per_device_train_batch_size": 2,
        "learning_rate": 1e-3,
        "use_cpu": True,
        "ddp_backend": "gloo",
        "bf16": False,
        "report_to": "none",
        "save_strategy": "no",
        "logging_strategy": "no",
        "disable_tqdm": True,
    }
    if args.liger:
        options |= {"use_liger_kernel": True, "liger_kernel_config": LIGER}
    if args.trainer == "grpo":
        options |= {"num_generations": 2, "max_completion_length": 8, "temperature": 1.0}
    else:
        options |= {"max_length": 32}
    return getattr(trl, f"{args.trainer.upper()}Config")(**options)


def make_trainer(args: argparse.Namespace, folder: Path) -> Any:
    kind = getattr(trl, f"{args.trainer.upper()}Trainer")

    class Printing(kind):
        """Prints the loss of rank 0 with all digits."""

        def training_step(self, *inputs: Any, **options: Any) -> torch.Tensor:
            loss = super().training_step(*inputs, **options)
            if self.accelerator.is_main_process:
                print(f"step {self.state.global_step} loss {loss.item()!r}", flush=True)
            return loss

        def compute_loss(self, *inputs: Any, **options: Any) -> Any:
            """--redirect: goes through the wrapper as it would under FSDP, by the same guard."""
            self.is_fsdp_enabled = args.redirect
            try:
                return super().compute_loss(*inputs, **options)
            finally:
                self.is_fsdp_enabled = False

    model = make_model(folder / "model", args.words)
    extra = {"reward_funcs": count_even_words} if args.trainer == "grpo" else {}
    return Printing(
        model=model,
        args=make_config(args, folder),
        train_dataset=make_data(args.trainer, args.words),
        processing_class=PreTrainedTokenizerFast.from_pretrained(model),
        **extra,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trainer", choices=["kto", "dpo", "sft", "grpo"], default="kto")
    parser.add_argument("--liger", action="store_true")
    parser.add_argument("--redirect", action="store_true", help="changes only TRL's guard")
    parser.add_argument("--compile", action="store_true", help="lets fused losses compile")
    parser.add_argument("--words", type=int, default=49, help="the vocabulary has 4 more entries")
    parser.add_argument("--micro-steps", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1)
    args = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    disable_progress_bars()
    with tempfile.TemporaryDirectory() as folder:
        make_trainer(args, Path(folder)).train()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
