"""What a trial measured, as a table."""

from __future__ import annotations

from memory_core.evals.questions import ALL
from memory_core.evals.retrieval import Comparison, Estimate, Report, Row

HEAD = (
    "| ranking | questions | n | k | any evidence | share of evidence | MRR | tokens | ms p50 / p95 |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def as_table(report: Report) -> str:
    """Return the rows as a Markdown table, then the rankings compared by pairs over all questions.

    In brackets: the interval that holds the mean in 95 of 100 resamples of the questions.
    """
    pairs = [one for one in report.comparisons if one.category == ALL]
    lines = [HEAD, *map(_row, report.rows)]
    if pairs:
        lines += ["", "Any evidence, first less second, over all questions:", *map(_comparison, pairs)]
    return "\n".join(lines)


def _row(row: Row) -> str:
    cells = [
        row.ranking,
        row.category,
        f"{row.questions:,}",
        str(row.k),
        _interval(row.any_evidence),
        _interval(row.evidence_share),
        _interval(row.reciprocal_rank),
        f"{row.tokens.value:,.0f}",
        f"{row.recall_ms_p50:.1f} / {row.recall_ms_p95:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def _comparison(one: Comparison) -> str:
    return (
        f"- k = {one.k}: {one.first} less {one.second} {one.difference.value:+.3f} [{one.difference.low:+.3f}, "
        f"{one.difference.high:+.3f}]; {one.only_first} questions answered by the first alone, {one.only_second} by the second"
    )


def _interval(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"
