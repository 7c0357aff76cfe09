"""The command line: `ocerl plan | frontier | reproduce …`.

Every command takes `--json` (one document on standard output and nothing else), `--out DIR` and `--seed`.
A mistake of the user's is one line on standard error and exit status 2; `--debug` shows the traceback.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from ocerl import __version__
from ocerl.cli import evaluate, explore, frontier, plan, reproduce, train
from ocerl.errors import OcerlError

COMMANDS = (plan, frontier, explore, train, evaluate, reproduce)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage in front."""

    def error(self, message: str) -> NoReturn:
        raise OcerlError(f"{message} (see {self.prog} --help)")


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = _Parser(prog="ocerl", description="Risk-sensitive reinforcement learning for the total reward.")
    parser.add_argument("--version", action="version", version=f"ocerl {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    for command in COMMANDS:
        command.add_to(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options = build_parser().parse_args(words)
        options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough (`ocerl … | head`): nobody is there to tell, at exit neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (Exception, KeyboardInterrupt) as error:
        if "--debug" in words:
            traceback.print_exc()
        message, status = _explain(error)
        print(f"ocerl: {' '.join(message.split())}", file=sys.stderr)
        return status
    return 0


def _explain(error: BaseException) -> tuple[str, int]:
    """What to say of an error, and the exit status."""
    match error:
        case OcerlError():
            return str(error), 2
        case OSError():
            return f"{error.filename or ''}: {error.strerror or error}".removeprefix(": "), 2
        case MemoryError():
            return "the memory is too small for this; a shorter horizon or a coarser resolution needs less", 2
        case KeyboardInterrupt():
            return "stopped", 130
        case _:
            return f"an error of ocerl's own, {type(error).__name__}: {error} (--debug shows where)", 1
