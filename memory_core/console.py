"""What passes between a command, a terminal, a file."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import getpass
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, TextIO
from uuid import UUID

from tqdm import tqdm

from memory_core.errors import Refusal, Refused
from memory_core.identifiers import identifier_refusal


@contextlib.contextmanager
def progress_bar(what: str, unit: str = "memories") -> Iterator[Callable[..., None]]:
    """Show progress on standard error, if that is a terminal.

    What is yielded is told how many are done, and of how many where that is known.
    """
    with tqdm(desc=what, unit=f" {unit}", file=sys.stderr, leave=False, mininterval=0.5, disable=None) as bar:

        def progress(done: int, total: int | None = None) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield progress


@contextlib.contextmanager
def download_bar(what: str) -> Iterator[Callable[[str, int | None, int | None], None]]:
    """Show a download's progress on standard error: its steps as lines, its bytes as a bar where that is a terminal."""
    with tqdm(desc=what, unit="B", unit_scale=True, file=sys.stderr, leave=False, mininterval=0.5, disable=None) as bar:
        last = ""

        def progress(status: str, done: int | None, total: int | None) -> None:
            nonlocal last
            if status != last:
                last = status
                bar.write(one_line(status), file=sys.stderr)
                bar.reset()
            if done is not None:
                bar.total = total
                bar.update(done - bar.n)

        yield progress


@contextlib.contextmanager
def opened(name: str) -> Iterator[BinaryIO]:
    """Open a file to read, or standard input for ``-``; raises `Refused` where it cannot be read."""
    if name == "-":
        if sys.stdin is None:
            raise Refused(Refusal(rule="file_is_readable", field="FILE", reason="is standard input, which is closed"))
        yield sys.stdin.buffer
        return
    with contextlib.ExitStack() as open_files:
        try:
            stream = open_files.enter_context(Path(name).open("rb"))
        except (OSError, ValueError) as error:
            reason = f"cannot be read: {error.strerror if isinstance(error, OSError) else 'no file name'}"
            raise Refused(Refusal(rule="file_is_readable", field="FILE", reason=reason)) from None
        yield stream


@contextlib.contextmanager
def written(name: str | None) -> Iterator[TextIO]:
    """Yield where to write: standard output, or a file that appears under its name only when it is whole."""
    if name is None:
        yield sys.stdout
        return
    target = Path(name).resolve()  # through a link, so that the link stays one
    if target.exists() and not target.is_file():
        reason = "is there, and is no regular file; name another"
        raise Refused(Refusal(rule="file_is_writable", field="--output", reason=reason))
    try:
        descriptor, unfinished = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        reason = f"cannot be written: {error.strerror}"
        raise Refused(Refusal(rule="file_is_writable", field="--output", reason=reason)) from None
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            yield out
        Path(unfinished).replace(target)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise


def answer(options: argparse.Namespace, value: Any, text: str) -> None:
    """Print the answer, as text or as JSON; JSON is ASCII only, so that no terminal acts on what it holds."""
    plain = dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value
    sys.stdout.write((json.dumps(plain, default=_plain) if options.json else text) + "\n")


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def one_line(text: str) -> str:
    """Return a message as one line that no terminal acts on."""
    return "".join(character if character.isprintable() else " " for character in text)


def readable(text: str) -> str:
    """Return a text in which line ends and tabs stay, and nothing else that a terminal acts on."""
    return "".join(character if character.isprintable() or character in "\n\t" else " " for character in text)


def operator() -> str:
    """Return as whom what is typed on this machine is recorded: the name somebody is logged in by."""
    try:
        name = f"user:{getpass.getuser()}"
    except (OSError, KeyError):  # a process of no user, as in a container
        name = "user:unnamed"
    return "user:unnamed" if identifier_refusal(name, field="by") else name


def organisation(typed: object) -> str:
    """Return the organisation that was typed; raises `Refused` for what cannot be one."""
    if refused := identifier_refusal(typed, field="--org"):
        raise Refused(refused)
    return str(typed)
