"""The command line: one file per verb, and the only place where all rooms meet.

Results go to stdout, everything else to stderr. Exit codes: 0 holds (or done), 1 violated,
2 unknown or unusable input, 130 interrupted, 143 ended by SIGTERM, 129 by SIGHUP, which is heard
as SIGTERM unless it is ignored from the start (nohup).
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
import traceback
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from ordercast import __version__
from ordercast.cli.memory import lacks_memory, too_little_memory
from ordercast.cli.open_files import too_few_files
from ordercast.cli.output import ReaderGoneError, answering
from ordercast.cli.parsing import add_verb
from ordercast.cli.say import say_aside
from ordercast.cli.stopping import Terminated, terminable
from ordercast.errors import OrdercastError
from ordercast.spelling import did_you_mean

__all__ = ["VERBS", "main", "parser"]

VERBS = {
    verb: f"ordercast.cli.{verb}"
    for verb in (
        "run",
        "node",
        "simulate",
        "sweep",
        "verify",
        "stream",
        "report",
        "explain",
        "import",
        "export",
        "sort",
        "keys",
        "algorithms",
        "bench",
    )
} | {"import": "ordercast.cli.import_"}
"""And the module of each, which is loaded when it is needed."""

_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""What can be wrong with a file that is open, whose name the system does not tell."""


class _Parser(argparse.ArgumentParser):
    """One clear sentence instead of a wall of usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see '{self.prog} --help')\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            words = [str(choice) for choice in action.choices]
            near = did_you_mean(value, words)
            raise argparse.ArgumentError(
                action, f"invalid choice: {value!r}{near}: choose from {', '.join(words)}"
            )

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """An empty path would be taken for the working directory, and is mostly a variable of the
        shell that is not set."""
        if action.type is Path and not arg_string:
            raise argparse.ArgumentError(action, "'' is no path: name one")
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError:
            if action.type not in (int, float):
                raise
            what = "a whole number" if action.type is int else "a number"
            raise argparse.ArgumentError(action, f"{arg_string!r} is not {what}") from None

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """What nobody knows is told by the verb that was given it, which knows its own flags."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            options.own.error(_unknown(unknown, options.own))
        return options


def _unknown(words: list[str], verb: argparse.ArgumentParser) -> str:
    told = []
    for word in words:
        flag = word.partition("=")[0]
        near = did_you_mean(flag, verb._option_string_actions) if flag[:1] == "-" else ""
        told.append(f"{word}{near}")
    return f"unrecognized arguments: {' '.join(told)}"


def parser(verbs: Iterable[str] = VERBS) -> argparse.ArgumentParser:
    """Of these verbs: loading all of them takes longer than most that they do."""
    top = _Parser(
        prog="ordercast",
        description="Ordered messaging between processes, with proof that the order held.",
    )
    top.add_argument("--version", action="version", version=f"ordercast {__version__}")
    parsers = top.add_subparsers(metavar="VERB", required=True, dest="verb")
    for verb in verbs:
        module = import_module(VERBS[verb])
        add_verb(parsers, verb, module).set_defaults(act=module.act)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser(_needed(arguments)).parse_args(arguments)
    for word in arguments:
        if not _is_text(word):
            options.own.error(f"{word!r} is not UTF-8: give the file another name")
    try:
        with terminable():
            code: int = options.act(options)
            with answering(code):
                return code
    except OrdercastError as error:
        _say(f"{options.own.prog}: {error}")
        return 2
    except KeyboardInterrupt as interruption:
        _say(f"{options.own.prog}: interrupted")
        by = interruption.by if isinstance(interruption, Terminated) else signal.SIGINT
        return 128 + by
    except BrokenPipeError as gone:
        # The reader of our output has gone (`| head`): not an error, and not to be complained of.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return gone.code if isinstance(gone, ReaderGoneError) else 0
    except OSError as error:
        _say(f"{options.own.prog}: {_plainly(error)}")
        return 2
    except Exception as error:
        if lacks_memory(error):
            _say(f"{options.own.prog}: {too_little_memory()}")
            return 2
        # A mistake of ours, and no verdict: Python's own exit code would say that one is violated.
        traceback.print_exc()
        print(f"{options.own.prog}: this is a bug of ordercast: please report it", file=sys.stderr)
        return 2


def _needed(arguments: Sequence[str]) -> Iterable[str]:
    """The one that is named; all of them, if none is and they have to be told of."""
    first = arguments[0] if arguments else ""
    if first in VERBS:
        return [first]
    return [] if first == "--version" else VERBS


def _is_text(word: str) -> bool:
    """Bytes that are no text could be a file's name, but neither be printed nor given to Arrow."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _say(sentence: str) -> None:
    with suppress(OSError):  # the terminal may be closed, and nobody hears it
        say_aside(sentence)


def _plainly(error: OSError) -> str:
    """Without the number that only programmers know."""
    if error.errno == errno.EMFILE:
        return too_few_files()
    if error.strerror is None:
        return str(error)
    what = f"{error.strerror[0].lower()}{error.strerror[1:]}"
    if error.filename is not None:
        return f"{error.filename}: {what}"
    if error.errno in _WRITING:
        return f"{what}, while stdout or a file was written"
    return what
