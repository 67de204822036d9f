# SPDX-License-Identifier: Apache-2.0
"""Between the job and the agent: nothing is raised into the job, Dynamo compiles no code of ours,
and tensor subclasses and modes of the program do not see what we read."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def unseen(function: Any) -> Any:
    """Tells Dynamo to run this function as it is (a function, not a callable object)."""
    evaluator = sys.modules["torch"]._C._dynamo.eval_frame
    try:
        if hasattr(evaluator, "skip_code"):  # before torch 2.6
            evaluator.skip_code(function.__code__)
        else:
            action = evaluator._FrameAction
            strategy = evaluator._FrameExecStrategy(action.SKIP, action.DEFAULT)
            evaluator.set_code_exec_strategy(function.__code__, strategy)
    except AttributeError:
        return function  # another torch: Dynamo takes the way that is_compiling() opens
    return function


def opaque(function: Any) -> Any:
    """The same, and Dynamo must not trace through it either: it breaks its graph there. Only for
    what it cannot trace anyway."""
    function._torchdynamo_disable = True
    function._torchdynamo_disable_msg = None
    return unseen(function)


def shielded(
    is_on: Callable[[], bool], failed: Callable[[Exception], None], work: Callable[..., Any]
) -> Any:
    """`work`, safe to be called from the job; does nothing where `is_on` says no."""

    def call(*arguments: Any) -> Any:
        import torch  # the program has imported it, or nobody would call

        if torch.compiler.is_compiling():
            return None
        swap = torch._C._dynamo.eval_frame.set_eval_frame
        prior = swap(None)
        try:
            if not is_on():
                return None
            with torch._C.DisableTorchFunction():
                return work(*arguments)
        except Exception as error:
            failed(error)
            return None
        finally:
            swap(prior)

    return unseen(call)


def describe(error: BaseException) -> str:
    """One line: what, and where in the agent."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = ""
    if trace is not None:
        code = trace.tb_frame.f_code
        where = f" ({code.co_filename.rpartition('/')[2]}:{trace.tb_lineno})"
    return f"{type(error).__name__}: {error}{where}"
