"""The answer to a request for access as one page that the person understands, on a screen and on paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from uuid import UUID

from memory_core.access_json import (
    RIGHTS,
    Absence,
    Keeping,
    Kept,
    absence,
    keepings,
    origin_statement,
    recipients,
    replacements,
    told_reason,
)
from memory_core.access_page import END, HEAD, count, day, moment, section, table, value, visible
from memory_core.model import Disclosure, Kind, Origin, Purpose, State
from memory_core.prompt.block import NO_DECISION_SENTENCE
from memory_core.rights import AccessPackage, Measure, MeasureKind, PackageItem, RightsRequest

UNANSWERED = "Not answered by the organisation yet"

_QUESTIONS = {
    "controller": "who is responsible",
    "officer": "how to reach the data protection officer",
    "purposes": "(a) what the notes are for",
    "categories": "(b) what kinds of data they are",
    "recipients": "(c) who receives them",
    "retention": "(d) how long they are kept",
    "authority": "(f) where to complain",
    "automated_decisions": "(h) whether anything is decided automatically",
    "transfers": "(2) whether they go to other countries",
}
_STATES = {
    State.LIVE: "",
    State.EXPIRED: "Expired, not used any more",
    State.SWEPT: "Expired and emptied",
    State.RESTRICTED: "Kept, but not used",
    State.FORGOTTEN: "Erased",
}
_MEASURES = {
    MeasureKind.RESTRICTION: "Restriction: kept, but not used (Article 18)",
    MeasureKind.HOLD: "Legal hold: may not be erased while it stands",
    MeasureKind.SUPPRESSION: "Objection: nothing new may be noted (Article 21)",
}


def document(package: AccessPackage) -> str:
    """Return the answer as one HTML page: no script, nothing from elsewhere, and no value outside an escaped `<bdi>`.

    What a reader could not see in a value, or what could turn its order round, is written as ``‹U+202E›``. The text of an
    item that is left out is nowhere in it, nor are the names of others, the reason of a hold, or who erased or placed what.
    """
    numbers = {item.memory.memory_id: number for number, item in enumerate(package.items, start=1)}
    return "".join(
        (
            HEAD,
            _opening(package),
            _missing(package),
            _figures(package.items),
            _reading(),
            *_answers(package),
            _measures(package, numbers),
            _requests(package),
            _notes(package, numbers),
            END,
        )
    )


def _opening(package: AccessPackage) -> str:
    subject, answers = package.subject, package.answers
    name = f"{value(subject.label)}, " if subject.label else ""
    rows = [
        ("For", f"{name}{value(subject.type)} {value(subject.id)}"),
        ("Also known as", ", ".join(map(value, subject.aliases))),
        ("From", _answer(answers.controller) + f" <small>(organisation {value(package.org_id)})</small>"),
        ("Data protection officer", _answer(answers.officer)),
        ("Your request", package.reference and value(package.reference)),
        ("Answered on", f"{moment(package.at)} by {value(package.by)}"),
    ]
    listed = "".join(f"<dt>{name}</dt><dd>{shown}</dd>" for name, shown in rows if shown)
    return (
        "<header><h1>The notes we keep about you</h1>"
        f"<p class=lead>Answer to your request for access under Article 15 of the {value(package.law)}.</p>"
        f"<dl class=facts>{listed}</dl></header>\n<main>\n"
    )


def _missing(package: AccessPackage) -> str:
    unanswered = package.answers.unanswered
    if not unanswered:
        return ""
    listed = "".join(f"<li>{_QUESTIONS.get(name, name)}</li>" for name in unanswered)
    return (
        f"<section class=notice><h2>This answer is not complete</h2><p>{UNANSWERED}:</p><ul>{listed}</ul></section>\n"
    )


def _figures(items: Sequence[PackageItem]) -> str:
    origins = Counter(item.memory.origin for item in items)
    absent = Counter(absence(item) for item in items)
    to_runs = sum(any(one.purpose is Purpose.RUN for one in item.memory.disclosures) for item in items)
    figures = [
        (len(items), "notes in all" if len(items) != 1 else "note in all"),
        (origins[Origin.PERSON], "stated by a person"),
        (origins[Origin.INFERENCE], "inferred by a model"),
        (to_runs, "shown to a run of an AI agent"),
    ]
    told = "".join(f"<li><b>{number:,}</b> {name}</li>" for number, name in figures)
    more = [
        (
            absent[Absence.ERASED] + absent[Absence.EXPIRED],
            "erased or expired: only the record that there was one is left",
        ),
        (absent[Absence.LEFT_OUT], "without their text, to protect the rights of others (Article 15(4))"),
    ]
    rest = "".join(f"<p>{count(number, 'note')} {name}.</p>" for number, name in more if number)
    return f"<section><h2>In short</h2><ul class=figures>{told}</ul>{rest}</section>\n"


def _reading() -> str:
    return (
        "<section><h2>How to read this</h2>"
        "<p>A “note” is one sentence or two that our software keeps and may show to an AI model later. "
        "“Inferred” means that a model concluded it by itself: nobody stated it. "
        "All times are in UTC. "
        f"Characters that cannot be seen are written out, like {visible(chr(0x202E))}.</p></section>\n"
    )


def _answers(package: AccessPackage) -> Iterable[str]:
    answers, items = package.answers, package.items
    yield section("(a) What the notes are for", "15(1)(a)", _answer(answers.purposes))
    yield section("(b) What kinds of data they are", "15(1)(b)", _answer(answers.categories), _indexed(items))
    yield section("(c) Who receives them", "15(1)(c)", _answer(answers.recipients), _shown_to(items))
    yield section(
        "(d) How long they are kept",
        "15(1)(d)",
        _answer(answers.retention),
        "Each note has a date of its own, given with it below. When a note is erased or expires, its text goes, and the "
        f"record that there was one stays for {count(package.tombstone_days, 'day')}.",
    )
    rights = "".join(
        f"<dt>{right.capitalize()} <small>Article {article}</small></dt><dd>{means}</dd>"
        for right, article, means in RIGHTS
    )
    yield section(
        "(e) What you can ask us for",
        "15(1)(e)",
        "These are your rights. Each has conditions in the law; ask us, and we tell you how they apply to you.",
        after=f"<dl class=facts>{rights}</dl>",
    )
    yield section(
        "(f) Where you can complain",
        "15(1)(f)",
        _answer(answers.authority),
        "You have the right to complain to the supervisory authority (Article 77), whether or not you have asked us first.",
    )
    yield section(
        "(g) Where the notes come from",
        "15(1)(g)",
        "Each note below says who stated it, or which agent inferred it, in which run, and from which source if one was noted.",
        after=_authors(items),
    )
    yield section(
        "(h) Automated decisions, and the part a note plays",
        "15(1)(h)",
        _answer(answers.automated_decisions),
        "A note may be shown to an AI model as background for its work. This sentence then stands with it, word for word "
        f"(“memory” is our software’s word for a note): <q>{NO_DECISION_SENTENCE}</q>",
    )
    yield section("(2) Whether they go to other countries", "15(2)", _answer(answers.transfers))


def _answer(answer: str | None) -> str:
    return value(answer) if answer else f"<em>{UNANSWERED}.</em>"


def _indexed(items: Sequence[PackageItem]) -> str:
    number = sum(item.memory.embedding_model is not None for item in items)
    if not number:
        return ""
    return f"For {count(number, 'note')} the software also keeps numbers computed from the text, by which it is found again."


def _shown_to(items: Sequence[PackageItem]) -> str:
    rows = [
        f"<tr><td>{'Run' if one.purpose is Purpose.RUN else 'Preview by a person'} {value(one.run_id)}</td>"
        f"<td>{one.items:,}</td><td>{moment(one.first_at)}</td><td>{moment(one.last_at)}</td></tr>\n"
        for one in recipients(items)
    ]
    if not rows:
        return "<p>By our records none of these notes has been shown to anybody.</p>"
    told = (
        "<p>By our records these have been shown notes about you: runs of our AI agents, and people in a preview.</p>"
    )
    return told + table("runs", ("Shown to", "Notes", "First", "Last"), rows)


def _authors(items: Sequence[PackageItem]) -> str:
    counted = Counter((origin_statement(item.memory), item.memory.author) for item in items)
    rows = [
        f"<tr><td>{how.capitalize()}</td><td>{value(author)}</td><td>{number:,}</td></tr>\n"
        for (how, author), number in sorted(counted.items(), key=lambda one: (-one[1], one[0]))
    ]
    return "<p>In all, these are:</p>" + table("authors", ("How", "By whom", "Notes"), rows) if rows else ""


def _measures(package: AccessPackage, numbers: dict[UUID, int]) -> str:
    own = {request.reference for request in package.requests}

    def row(measure: Measure) -> str:
        what = "Everything about you" if measure.memory_id is None else _numbered(measure.memory_id, numbers)
        until = moment(measure.lifted_at) if measure.lifted_at else "It stands until it is lifted"
        reason = told_reason(measure)
        reference = measure.request_reference if measure.request_reference in own else None
        why = f"<br>Because: {value(reason)}" if reason else ""
        why += f"<br>Request {value(reference)}" if reference else ""
        return (
            f"<tr><td>{_MEASURES[measure.kind]}{why}</td><td>{what}</td>"
            f"<td>{moment(measure.placed_at)}</td><td>{until}</td></tr>\n"
        )

    if not package.measures:
        return ""
    listed = table("measures", ("What", "About", "Since", "Until"), map(row, package.measures))
    return f"<section><h2>What limits the use of these notes</h2>{listed}</section>\n"


def _requests(package: AccessPackage) -> str:
    def row(request: RightsRequest) -> str:
        here = "Answered here" if request.reference == package.reference else request.status.value.capitalize()
        closed = f"<br>{moment(request.closed_at)}" if request.closed_at else ""
        ground = f"<br>{value(request.ground.value)}" if request.ground else ""
        return (
            f"<tr><td>{value(request.reference)}</td><td>{request.type.value.capitalize()} "
            f"(Article {request.type.article})</td><td>{day(request.received_on)}</td><td>{here}{closed}{ground}</td></tr>\n"
        )

    if not package.requests:
        return ""
    listed = table("requests", ("Reference", "Right", "Received", "Where it stands"), map(row, package.requests))
    return f"<section><h2>Your requests</h2>{listed}</section>\n"


def _notes(package: AccessPackage, numbers: dict[UUID, int]) -> str:
    opening = "<section><h2>The notes <small>Article 15(3)</small></h2>"
    if not package.items:
        return f"{opening}<p>We keep no notes about you.</p></section>\n"
    replaced_by = replacements(package)
    rows = (
        _note(number, item, keeping, numbers, replaced_by.get(item.memory.memory_id))
        for number, (item, keeping) in enumerate(zip(package.items, keepings(package), strict=True), start=1)
    )
    columns = ("No.", "Note", "Where it comes from", "Kept", "Shown to")
    return f"{opening}<p>Newest first.</p>{table('notes', columns, rows)}</section>\n"


def _note(number: int, item: PackageItem, keeping: Keeping, numbers: dict[UUID, int], replaced_by: UUID | None) -> str:
    memory = item.memory
    why = absence(item)
    lines = [value(memory.text) if why is None else _without_text(item, why)]
    lines += [f"<small>{_STATES[memory.state]}.</small>"] if _STATES[memory.state] and memory.text is not None else []
    lines += ["<small>Operational, not about a person.</small>"] if memory.kind is Kind.FACT else []
    lines += _correction(item, why, numbers)
    lines += [f"<small>Replaced by {_numbered(replaced_by, numbers)}.</small>"] if replaced_by else []
    lines += _dispute(item)
    origin = [
        f"{origin_statement(memory).capitalize()}: {value(memory.author)}",
        f"Run {value(memory.run_id)}",
        *([f"Source {value(memory.source)}"] if memory.source else []),
        f"Written {moment(memory.created_at)}",
    ]
    if memory.last_seen_at != memory.created_at:
        origin.append(f"Last seen {moment(memory.last_seen_at)}, run {value(memory.last_seen_run_id)}")
    shown = "<br>".join(map(_showing, memory.disclosures)) or "Nobody"
    return (
        f"<tr><td>{number}</td><td>{'<br>'.join(lines)}</td><td>{'<br>'.join(origin)}</td>"
        f"<td>{_kept(keeping)}</td><td>{shown}</td></tr>\n"
    )


def _without_text(item: PackageItem, why: Absence) -> str:
    if why is Absence.LEFT_OUT:
        return f"<em>Left out to protect the rights of others (Article 15(4)):</em> {value(item.left_out)}"
    emptied_at = item.memory.forgotten_at or item.memory.swept_at
    on = f" on {moment(emptied_at)}" if emptied_at else ""
    return f"<em>{'Erased' if why is Absence.ERASED else 'Expired and emptied'}{on}; the text is gone.</em>"


def _correction(item: PackageItem, why: Absence | None, numbers: dict[UUID, int]) -> list[str]:
    supersedes, by = item.memory.supersedes, item.memory.corrected_by
    reason = item.memory.correction_reason if why is None else None  # it could quote the text
    told = [f"replaces {_numbered(supersedes, numbers)}"] if supersedes else []
    told += [f"by {value(by)}"] if by else []
    told += [f"because {value(reason)}"] if reason else []
    return [f"<small>A correction: {', '.join(told)}.</small>"] if supersedes or by else []


def _dispute(item: PackageItem) -> list[str]:
    words, at = None if item.left_out else item.memory.dispute, item.memory.disputed_at
    withdrawn_at = item.memory.dispute_withdrawn_at
    if words is None and at is None:
        return []
    since = f" on {moment(at)}" if at else ""
    until = f", withdrawn on {moment(withdrawn_at)}" if withdrawn_at else ""
    gone = "left out with the note" if item.left_out else "your words are gone"
    return [f"<b>You disputed this{since}{until}:</b> {value(words) if words else gone}"]


def _kept(keeping: Keeping) -> str:
    date = f"until {moment(keeping.until)}"
    if keeping.until_lifted:
        names = {MeasureKind.RESTRICTION: "the restriction", MeasureKind.HOLD: "the legal hold"}
        lifted = " and ".join(names[kind] for kind in keeping.until_lifted)
        least = "" if keeping.is_due else f"; at least {date}"
        told = f"until {lifted} {'is' if len(keeping.until_lifted) == 1 else 'are'} lifted{least}"
    else:
        told = f"{date}; it goes with the next clean-up" if keeping.is_due else date
    return f"Only the record, {told}" if keeping.kept is Kept.RECORD else told[0].upper() + told[1:]


def _showing(one: Disclosure) -> str:
    whom = "Run" if one.purpose is Purpose.RUN else "Preview"
    return f"{whom} {value(one.run_id)}, {moment(one.at)}"


def _numbered(memory_id: UUID, numbers: dict[UUID, int]) -> str:
    return f"note {numbers[memory_id]}" if memory_id in numbers else f"a note that is not listed here ({memory_id})"
