# SPDX-License-Identifier: Apache-2.0
"""How the process ends, and what it says then."""

from __future__ import annotations

import atexit
import functools
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType, TracebackType

    from .core import Agent


def hook_torch(agent: Agent, module: ModuleType) -> None:
    """torch has been imported as a whole, and with it multiprocessing."""
    agent.seen.tell("torch")
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        _hook_process(agent, process.BaseProcess)  # type: ignore[attr-defined]


class End:
    """Says once what ended the program, and goodbye."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._error: BaseException | None = None
        self._status = 0  # what the main thread gave to sys.exit last

    def raised(self, error: BaseException) -> None:
        """An exception that nobody caught."""
        agent = self._agent
        if self._error is not None or not agent.is_on() or agent.channel is None:
            return
        self._error = error
        step, micro = agent.moment()
        agent.channel.event(
            "exception",
            step,
            micro,
            error_type=type(error).__name__,
            text=_text_of(error),
            phase=agent.channel.phase,
        )
        agent.channel.flush()

    def leaves(self, status: Any) -> None:
        """sys.exit is called."""
        if self._agent.is_on() and threading.current_thread() is threading.main_thread():
            self._status = status & 0xFF if isinstance(status, int) else int(status is not None)

    def __call__(self) -> None:
        agent = self._agent
        if not agent.is_on() or agent.channel is None:
            return
        try:
            self._say_goodbye(agent)
        except Exception as error:
            agent.failed(error)
        finally:
            agent.is_ended = True

    def _say_goodbye(self, agent: Agent) -> None:
        channel = agent.channel
        assert channel is not None
        # Set by the interpreter, whoever replaced its excepthook.
        last = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        if self._error is None and isinstance(last, BaseException):
            self.raised(last)
        try:
            agent.updates.finish_all()
            agent.steps.finish()
        except Exception as error:
            agent.failed(error)
        channel.enter("exit", *agent.moment())
        channel.answer_until_go()
        channel.bye(self._status if self._error is None else 1)


def watch_end(agent: Agent) -> None:
    """Called when the channel opens, in the process that trains."""
    end = End(agent)
    agent.end = end
    atexit.register(end)
    previous = sys.excepthook

    @functools.wraps(previous)
    def excepthook(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> Any:
        try:
            end.raised(error)
        except Exception as failure:
            agent.failed(failure)
        return previous(kind, error, trace)

    sys.excepthook = excepthook
    _watch_exit(end)
    _watch_finalizers(end)


# Where a launcher started the ranks, nobody else knows a rank's own status.
def _watch_exit(end: End) -> None:
    original = sys.exit

    @functools.wraps(original)
    def leave(status: Any = None, /) -> Any:
        end.leaves(status)
        original(status)

    sys.exit = leave


# Forked children of multiprocessing leave by os._exit: only its own finalizers run there.
def _watch_finalizers(end: End) -> None:
    process = sys.modules.get("multiprocessing.process")
    util = sys.modules.get("multiprocessing.util")
    if process is None or util is None or process.parent_process() is None:
        return
    util.Finalize(None, end, exitpriority=-100)


# A child's exception never reaches sys.excepthook. torch.multiprocessing.spawn turns it into
# sys.exit(1), with the exception as its context.
def _hook_process(agent: Agent, kind: Any) -> None:
    original = kind.run

    @functools.wraps(original)
    def run(self: Any) -> None:
        try:
            original(self)
        except BaseException as error:
            end = agent.end
            cause = error.__context__ if isinstance(error, SystemExit) else error
            is_exit = isinstance(error, SystemExit) and error.code in (0, None)
            if end is not None and cause is not None and not is_exit:
                _tell(agent, end, cause)
            raise

    kind.run = run


def _tell(agent: Agent, end: End, cause: BaseException) -> None:
    try:
        end.raised(cause)
    except Exception as failure:
        agent.failed(failure)


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""
