"""The parts of a page for print and screen on which every value is shown as itself."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from functools import lru_cache

from memory_core.characters import JOINERS, is_invisible, is_joined, is_mark

# Whatever is not sure to be written as itself: all but white space, printable ASCII and, for speed only, common letters,
# dashes and quotation marks that no script joins.
_NOT_PLAIN = re.compile(
    "[^\\n\\t -~\u00c0-\u024f\u0410-\u044f\u2010-\u2027\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fa5\uac00-\ud7a3]+"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def value(given: object) -> str:
    """Write a value as itself in a `<bdi>` that keeps its direction from what stands around it; see `visible`."""
    return f"<bdi>{visible(str(given))}</bdi>"


def visible(text: str) -> str:
    """Escape a text, and write as ``‹U+202E›`` what a reader could not see, or what could reorder or cover the page.

    Line breaks and tabs stay, joiners too between letters of scripts that need them.
    """
    return "".join(_parts(text.replace("\r\n", "\n")))


def _parts(text: str) -> Iterable[str]:
    end = 0
    for match in _NOT_PLAIN.finditer(text):
        yield html.escape(text[end : match.start()])
        yield from _run(text, match.start(), match.end())
        end = match.end()
    yield html.escape(text[end:])


def _run(text: str, start: int, end: int) -> Iterable[str]:
    on_itself = start > 0  # the character before was written as itself, so a mark may be drawn onto it
    for place in range(start, end):
        character = text[place]
        if character in JOINERS and is_joined(text[max(place - 1, 0) : place], text[place + 1 : place + 3]):
            on_itself = True
        elif is_invisible(character):
            on_itself = False
        elif not is_mark(character):
            on_itself = True
        yield character if on_itself else _escape(character)


@lru_cache(maxsize=4096)
def _escape(character: str) -> str:
    return f"<span class=hidden>‹U+{ord(character):04X}›</span>"


def section(title: str, article: str, *paragraphs: str, after: str = "") -> str:
    """Write a section that answers one part of an article; empty paragraphs are left away."""
    told = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs if paragraph)
    return f"<section><h2>{title} <small>Article {article}</small></h2>{told}{after}</section>\n"


def table(name: str, columns: Sequence[str], rows: Iterable[str]) -> str:
    """Write a table whose heads are repeated on each page; a row is a `<tr>`."""
    heads = "".join(f"<th scope=col>{column}</th>" for column in columns)
    return f"<table class={name}><thead><tr>{heads}</tr></thead>\n<tbody>\n{''.join(rows)}</tbody></table>"


def count(number: int, noun: str) -> str:
    """Write a number of things: 1 note, 1,200 notes."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def day(of: date) -> str:
    """Write a day: 2 Nov 2026."""
    return f"{of.day} {_MONTHS[of.month - 1]} {of.year}"


def moment(at: datetime) -> str:
    """Write an instant, in UTC: 2 Nov 2026, 09:30."""
    utc = at.astimezone(UTC)
    return f"{day(utc)}, {utc:%H:%M}"


_STYLE = """
:root{color-scheme:light dark;
--paper:#fff;--ink:#1c2430;--soft:#56606e;--line:#cdd4dc;--wash:#f3f6f9;--mark:#1d5f8a;--warn:#8a4b00;--warnwash:#fff4e2}
@media screen and (prefers-color-scheme:dark){:root{
--paper:#14191f;--ink:#e6eaf0;--soft:#a3aebb;--line:#3b4552;--wash:#1f2731;--mark:#7fbfe6;--warn:#ffc46b;--warnwash:#33270f}}
*{box-sizing:border-box}
html{background:var(--paper);-webkit-text-size-adjust:100%}
body{margin:0 auto;padding:2rem 1rem 4rem;max-width:68rem;color:var(--ink);
font:16px/1.5 system-ui,"Segoe UI",Roboto,"Noto Sans",sans-serif}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .3rem}
h2{font-size:1.15rem;line-height:1.3;margin:2rem 0 .4rem}
p{margin:.4rem 0;max-width:46rem}
small{font-size:.85em;color:var(--soft);font-weight:400}
em{color:var(--warn)}
bdi{white-space:pre-wrap;overflow-wrap:anywhere}
q{display:block;margin:.6rem 0;padding:.5rem .9rem;border-left:3px solid var(--mark);background:var(--wash);font-weight:600}
.lead{font-size:1.1rem;color:var(--soft)}
.hidden{unicode-bidi:isolate;direction:ltr;white-space:nowrap;padding:0 .15em;border-radius:.2em;
background:var(--warnwash);color:var(--warn);font:.8em ui-monospace,monospace}
.facts{display:grid;grid-template-columns:13rem 1fr;gap:.35rem 1rem;margin:.8rem 0;max-width:46rem}
dt{font-weight:600}dt small{display:block}dd{margin:0}
.notice{border:1px solid var(--warn);border-left-width:5px;background:var(--warnwash);padding:.2rem 1.1rem .6rem}
.notice h2{margin-top:.6rem;color:var(--warn)}
.notice ul{margin:.2rem 0;padding-left:1.2rem}
.figures{display:grid;grid-template-columns:repeat(4,1fr);gap:.7rem;list-style:none;padding:0;margin:.6rem 0}
.figures li{border:1px solid var(--line);background:var(--wash);padding:.5rem .8rem;color:var(--soft);font-size:.9rem}
.figures b{display:block;font-size:1.7rem;line-height:1.25;color:var(--ink)}
table{width:100%;border-collapse:collapse;margin:.7rem 0;font-size:.9rem}
th,td{text-align:left;vertical-align:top;padding:.4rem .6rem .4rem 0;border-bottom:1px solid var(--line)}
th{border-bottom:2px solid var(--soft)}
td{overflow:clip}
.notes{table-layout:fixed}
.notes th:nth-child(1){width:2.8rem}
.notes th:nth-child(3){width:25%}
.notes th:nth-child(4){width:18%}
.notes th:nth-child(5){width:21%}
.notes td:nth-child(n+3){font-size:.8rem;color:var(--soft)}
@media screen and (max-width:46rem){
.facts{grid-template-columns:1fr;gap:0}
dd{margin-bottom:.6rem}
.figures{grid-template-columns:1fr 1fr}
.notes thead{position:absolute;clip-path:inset(50%)}
.notes,.notes tbody,.notes tr,.notes td{display:block}
.notes tr{padding:.7rem 0;border-bottom:1px solid var(--line)}
.notes td{border:0;padding:.15rem 0}
.notes td:nth-child(1){font-weight:600}
.notes td:nth-child(1)::before{content:"Note "}
.notes td:nth-child(4)::before{content:"Kept: "}
.notes td:nth-child(5)::before{content:"Shown to: "}}
@page{size:A4;margin:16mm 15mm 18mm;
@bottom-left{content:"Confidential: personal data";font:8pt sans-serif;color:#56606e}
@bottom-right{content:"Page " counter(page) " of " counter(pages);font:8pt sans-serif;color:#56606e}}
@media print{
:root{color-scheme:light}
body{font-size:10pt;max-width:none;padding:0}
thead{display:table-header-group}
tr,.figures,.notice,.facts,q{break-inside:avoid}
h2,p:has(+table){break-after:avoid}
p{orphans:3;widows:3}
.figures li,.notice,q,.hidden{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""
HEAD = (
    "<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
    # Nothing is loaded, nothing runs.
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
    '<meta name=viewport content="width=device-width,initial-scale=1">\n'
    f"<title>The notes we keep about you</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
)
END = "</main>\n</body>\n</html>\n"
