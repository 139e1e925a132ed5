"""The command line: ``python -m memory_core COMMAND``."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from memory_core import agent_commands, commands, console, desk_commands, member_commands, model_commands
from memory_core.config import Tier, settings
from memory_core.errors import MemoryCoreError
from memory_core.model import Ranking


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0 done, 1 refused or failed (with one line on stderr). Usage errors exit with 2."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _end)
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(signal.SIGHUP, _end)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, PTH123
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a name still shows the answer
    options = parser().parse_args(arguments)
    try:
        status: int | None = options.run(options, settings())
        sys.stdout.flush()
    except MemoryCoreError as error:
        sys.stderr.write(f"{console.one_line(str(error))}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; what was committed stays, nothing is half-written\n")
        return 1
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # whoever read our output has simply gone
            sys.stderr.write(f"cannot be read or written: {console.one_line(error.strerror or str(error))}\n")
        with contextlib.suppress(OSError):  # what is left in the buffer has nowhere to go
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status or 0


def _end(number: int, frame: object) -> None:
    # As an exception, so that what is half-written goes, and the embedded server with its last user.
    sys.exit(128 + number)


def parser() -> argparse.ArgumentParser:
    """Build the parser of every command."""
    top = argparse.ArgumentParser(prog="python -m memory_core", description="The memory store's command line.")
    command = partial(_command, top.add_subparsers(metavar="COMMAND", required=True))
    migrate = command("migrate", commands.run_migrate, "Bring the database to this version's schema.", org=False)
    migrate.add_argument("--sql", action="store_true", help="print the statements, touch nothing")

    importing = command(
        "import", commands.run_import, "Load memories from a JSON Lines file: all of them, or none.", org=False
    )
    importing.add_argument("file", metavar="FILE", help="the file, or - for standard input")
    importing.add_argument("--org", help="store every line here, whatever organisation it names")
    importing.add_argument("--skip-bad", action="store_true", help="store the good lines and report the bad ones")

    exporting = command("export", commands.run_export, "Write the live memories as JSON Lines.", as_json=False)
    exporting.add_argument("--by", help="who exports, such as user:ines (default: the user logged in here)")
    exporting.add_argument(
        "--output", metavar="FILE", help="the file to write, whole or not at all (default: standard output)"
    )

    recall = command(
        "recall", commands.run_recall, "Show the block a model would see; a preview, recorded as a disclosure."
    )
    recall.add_argument("query", metavar="QUERY")
    recall.add_argument("--limit", type=int, default=5, help="how many memories, 1 to 50 (default: 5)")
    recall.add_argument("--token-budget", type=int, help="at most this many estimated tokens")
    recall.add_argument("--ranking", help="recency, dense, lexical or hybrid (default: the best that answers)")
    recall.add_argument("--kind", action="append", dest="kinds", help="only this kind; may be given twice")
    recall.add_argument("--run", dest="run_id", help="the run it is for (default: a preview of its own)")
    recall.add_argument(
        "--because", help="why you look, in at most 200 characters; of a preview, which is a disclosure to you"
    )

    held = command("held", commands.run_held, "Show everything held about a subject; the look is on record.")
    held.add_argument("--by", help="who looks, such as user:ines (default: the user logged in here)")
    forget = command("forget", commands.run_forget, "Erase everything held about a subject, leaving tombstones.")
    for added in (held, forget):
        added.add_argument("type", metavar="TYPE", help="the subject's type, such as candidate")
        added.add_argument("id", metavar="ID", help="the subject's id")
    forget.add_argument("--by", required=True, help="who erases, such as user:ines")
    forget.add_argument("--reason", required=True, help="why, in at most 500 characters; do not quote what is erased")

    embed = command("embed", commands.run_embed, "Embed the memories that have no vector yet.")
    embed.add_argument("--model", help="change the organisation to this model: minilm or ollama:<model>")

    _add_desk_commands(command)
    _add_member_commands(command)
    _add_model_commands(command)
    _add_agent_commands(command)
    command("demo", commands.run_demo, "Fill an empty organisation with a believable demo.")
    serve = command("serve", commands.run_serve, "Start the workbench on a free local port.", org=False, as_json=False)
    serve.add_argument("--demo", action="store_true", help="fill the embedded database's demo organisation first")
    serve.add_argument("--port", type=int, help="the port (default: the first free one from 8501)")
    serve.add_argument(
        "--address", default="127.0.0.1", help="where to listen; without a sign-in only on this machine's own"
    )
    return top


def _command(
    among: Any, name: str, run: Any, text: str, *, org: bool = True, as_json: bool = True
) -> argparse.ArgumentParser:
    added: argparse.ArgumentParser = among.add_parser(name, help=text, description=text)
    added.set_defaults(run=run)
    if org:
        added.add_argument("--org", help="the organisation (default: MEMORY_ORG, else demo)")
    if as_json:
        added.add_argument("--json", action="store_true", help="answer in JSON")
    return added


def _add_desk_commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add what is about expiry, restores and proof."""
    sweeping = command(
        "sweep",
        desk_commands.run_sweep,
        "Empty what has expired, delete tombstones whose own retention is over; every organisation, or one.",
        org=False,
    )
    sweeping.add_argument("--org", help="this organisation only (default: all)")
    sweeping.add_argument("--dry-run", action="store_true", help="count only, change nothing")
    sweeping.add_argument(
        "--compact",
        action="store_true",
        help="then rewrite tables and indexes as their owner, so that their files have nothing of what was erased",
    )
    replaying = command(
        "replay-erasures",
        desk_commands.run_replay,
        "After a restore from a backup: do again what the ledger outside the database has and the database has not.",
        org=False,
    )
    replaying.add_argument("ledger", metavar="LEDGER", help="the ledger's file")
    replaying.add_argument("--org", help="the organisation it must be of")
    replaying.add_argument("--by", help="who does it, such as user:ines (default: the user logged in here)")
    replaying.add_argument("--skip-bad", action="store_true", help="leave bad lines out; the damaged file is set aside")
    verifying = command(
        "verify-trail",
        desk_commands.run_verify_trail,
        "Check the trail from its first line to its last; exit status 1 names the first that does not hold.",
    )
    verifying.add_argument("--head", help="a head that was printed before, NUMBER:HASH: shows also a missing end")


def _add_member_commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add what is about members."""
    member = command("member", None, "Say who is a member, and in which role.", org=False, as_json=False)
    act = partial(_command, member.add_subparsers(metavar="ACT", required=True))
    adding = act("add", member_commands.run_add, "Give somebody a role; the first admin is added by this command only.")
    listing = act("list", member_commands.run_list, "Show the members, each role on a line.")
    listing.add_argument("--removed", action="store_true", help="show also those who were removed")
    removing = act("remove", member_commands.run_remove, "Take a role from somebody, or all; it counts at once.")
    for added in (adding, removing):
        added.add_argument("--issuer", required=True, metavar="URL", help="the provider, as its tokens name it")
        added.add_argument("--subject", required=True, metavar="SUB", help="whom the provider's tokens mean")
        added.add_argument("--by", help="who does it, such as user:ines (default: the user logged in here)")
    adding.add_argument("--role", required=True, help="dpo, engineer, auditor or admin")
    adding.add_argument("--name", required=True, help="what the trail calls them, such as user:ines")
    adding.add_argument("--email", help="for people to recognise them; nothing is decided by it")
    removing.add_argument("--role", help="this role only (default: all of theirs)")


def _add_model_commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add what is about rankings and chat models."""
    evaluating = command(
        "eval-recall",
        model_commands.run_eval_recall,
        "Measure rankings on memories and questions of known evidence.",
        org=False,
    )
    evaluating.add_argument("memories", metavar="MEMORIES", help="a file in the import format")
    evaluating.add_argument("questions", metavar="QUESTIONS", help="a file of questions with their evidence")
    evaluating.add_argument("--org", help="take every line of both for this organisation's")
    evaluating.add_argument(
        "--allow-missing", action="store_true", help="count evidence that names no memory as never found"
    )
    evaluating.add_argument(
        "--k", default="1,3,5,10,20", help="how many memories, several with commas (default: 1,3,5,10,20)"
    )
    evaluating.add_argument(
        "--ranking", default=",".join(Ranking), help="which rankings, several with commas (default: all of them)"
    )
    command("doctor", model_commands.run_doctor, "Say whether an agent's run would work, and what to type if not.")
    chat = command("chat", model_commands.run_chat, "Ask the chat model once, with the memories that a run would see.")
    chat.add_argument("prompt", metavar="PROMPT", help="what to ask, or - to read it from standard input")
    chat.add_argument("--tier", default=Tier.FAST, type=Tier, choices=list(Tier), help="the tier (default: fast)")
    chat.add_argument("--run", dest="run_id", help="the run it is for (default: a run of its own)")
    chat.add_argument("--limit", type=int, default=5, help="how many memories, 1 to 50 (default: 5)")
    chat.add_argument("--token-budget", type=int, help="at most this many estimated tokens of memories")
    chat.add_argument("--no-memory", action="store_true", help="without memories; nothing is disclosed")
    chat.add_argument("--thinking", action="store_true", help="show also what the model thinks")
    pulling = command("pull", model_commands.run_pull, "Have Ollama fetch a model, with progress.", org=False)
    pulling.add_argument("model", metavar="MODEL", help="the model, such as qwen3:0.6b")


def _add_agent_commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add what is about agents."""
    running = command(
        "run", agent_commands.run_run, "Run an agent on the sample workspace, with the organisation's memories."
    )
    running.add_argument("agent", metavar="AGENT", help="the agent, such as scheduling")
    running.add_argument("prompt", metavar="PROMPT", help="what is to be done, or - to read it from standard input")
    running.add_argument("--run", dest="run_id", help="the run's identifier (default: a new one)")
    running.add_argument(
        "--document", metavar="FILE", action="append", default=[], help="a retrieved document; may be given again"
    )
    running.add_argument("--no-memory", action="store_true", help="show it no memories at its beginning")
    smoke = command(
        "smoke", agent_commands.run_smoke, "Make one real run through the configured address, without memories."
    )
    evaluating = command("eval", agent_commands.run_eval, "Try the configured model on the agents' suites.")
    evaluating.add_argument(
        "--agent", action="append", default=[], help="this agent only; may be given again (default: all)"
    )
    evaluating.add_argument("--trials", type=int, default=1, help="how often each case is tried (default: 1)")
    evaluating.add_argument("--seed", type=int, default=0, help="what every trial's seed is derived from (default: 0)")
    evaluating.add_argument("--threshold", type=float, default=0.8, help="least share that passes (default: 0.8)")
    evaluating.add_argument("--temperature", type=float, help="of every call (default: the server's)")
    evaluating.add_argument("--max-output-tokens", type=int, help="of every answer (default: MODEL_MAX_OUTPUT_TOKENS)")
    evaluating.add_argument(
        "--fresh", action="store_true", help="begin anew, also where the same was tried and interrupted"
    )
    for added in (running, smoke, evaluating):
        added.add_argument("--by", help="who asks, such as user:maria (default: the user logged in here)")
        added.add_argument("--deadline", type=float, metavar="SECONDS", help="of a run (default: the agent's own)")
        added.add_argument(
            "--must-call",
            action="store_true",
            help="have the model call a tool in its first turn, where it can be made to",
        )
