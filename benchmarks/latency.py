"""What a million recorded calls cost the latency page beside ten thousand, as medians and their ratio in one run.

    python -m benchmarks.latency
    python -m benchmarks.latency --sizes 10000,1000000 --rounds 7

Each size is an organisation of its own on one embedded server, its calls spread evenly over thirty days. The rounds take
the sizes in turns, after one that warms both. "Figures" is the call of `latency()` alone, "page" the whole page as
Streamlit runs it, figures included, without a browser.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import psycopg
from streamlit.testing.v1 import AppTest

from memory_core.config import settings
from memory_core.db import database, embedded
from memory_core.latency import latency
from memory_core.selection import Period, Selection
from tests.call_rows import believable, store

ROOT = Path(__file__).resolve().parents[1]
DAYS = 30
TIMES_AT_MOST = 20


def loaded(home: Path, sizes: list[int]) -> None:
    """Store the calls of each size."""
    database.usable_engine(settings(memory_home=str(home), database_url=None, memory_embedder="none"))
    cluster = embedded.start(home)
    url = cluster.superuser.set(database=cluster.owner.database)
    now = datetime.now(UTC)
    with psycopg.connect(
        user=url.username, password=url.password, dbname=url.database, host=str(url.query["host"]), autocommit=True
    ) as connection:
        for size in sizes:
            with connection.transaction():
                store(connection, name(size), believable(name(size), size, until=now, days=DAYS, seed=size))
        connection.execute("VACUUM (ANALYZE) model_call")


def name(size: int) -> str:
    return f"calls-{size}"


def figures(home: Path, size: int, period: Period, ceiling: int | None) -> Callable[[], object]:
    """Return the call of `latency()` alone."""
    chosen = settings(memory_home=str(home), database_url=None, memory_embedder="none", model_tokens_per_minute=ceiling)
    return lambda: latency(name(size), Selection(period=period), settings=chosen)


def page(size: int, period: Period, ceiling: int | None) -> Callable[[], object]:
    """Return a run of the page, as for a visitor who opens it."""

    def run() -> None:
        os.environ |= {"MEMORY_ORG": name(size), "MODEL_TOKENS_PER_MINUTE": str(ceiling or "")}
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
        at.query_params["period"] = period.value
        at.switch_page("pages/5_Latency.py").run()
        assert not at.exception
        assert at.metric

    return run


def alternated(acts: list[Callable[[], object]], rounds: int) -> list[list[float]]:
    """Time each in turns, in milliseconds, after a round that warms all."""
    times: list[list[float]] = [[] for _ in acts]
    for turn in range(rounds + 1):
        for act, mine in zip(acts, times, strict=True):
            began = time.perf_counter()
            act()
            if turn:
                mine.append((time.perf_counter() - began) * 1000)
    return times


def line(what: str, few: list[float], many: list[float]) -> str:
    ratio = median(many) / median(few)
    verdict = "yes" if ratio <= TIMES_AT_MOST else "no"
    return f"| {what} | {median(few):,.0f} | {median(many):,.0f} | {ratio:.1f} | {verdict} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000,1000000")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)  # Streamlit finds it odd to be run without a server
    few, many = sorted(int(size) for size in arguments.sizes.split(","))
    home = Path(tempfile.mkdtemp(prefix="memory-bench-"))
    home.chmod(0o755)
    try:
        loaded(home / "home", [few, many])
        os.environ |= {"MEMORY_HOME": str(home / "home"), "MEMORY_EMBEDDER": "none"}
        print(f"| what | {few:,} calls, ms | {many:,} calls, ms | ratio | at most {TIMES_AT_MOST} |")
        print("|---|---|---|---|---|")
        for ceiling in (None, 8000):
            for period in (Period.DAY, Period.WEEK, Period.EVERYTHING):
                kept = f"{period.label}, {'no ceiling' if ceiling is None else 'a ceiling'}"
                for what, act in (
                    ("figures", lambda size: figures(home / "home", size, period, ceiling)),  # noqa: B023
                    ("page", lambda size: page(size, period, ceiling)),  # noqa: B023
                ):
                    times = alternated([act(few), act(many)], arguments.rounds)
                    print(line(f"{what}, {kept}", *times), flush=True)
    finally:
        embedded.stop(home / "home")
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
