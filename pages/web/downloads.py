"""Handing out a file that waits: to whoever asked for it, if they still may, once."""

from __future__ import annotations

import re
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from memory_core.config import Settings, settings
from memory_core.errors import MemoryCoreError, Refused
from memory_core.roles import Identity
from memory_core.workplace import Workplace, record_refusal
from pages.web.door import NOTHING
from pages.web.offers import OFFERS, PATH
from pages.web.signed_in import fetcher

FETCH = "fetch a file"


def fetch(request: Request) -> Response:
    """Answer with the file that waits at an address, else that there is nothing; who asks is looked up now.

    A stranger's fetch, a HEAD or one for a part of it leaves the file where it is. A fetch by somebody else, or once more,
    is on record in the trail of whose file it was; so is one by somebody who may not any more, and the file is gone.
    """
    token = request.path_params["token"]
    try:
        chosen = settings()
        try:
            who = fetcher(request, settings=chosen)
        except Refused:
            return refused(token, None, settings=chosen)
        if request.method != "GET" or "range" in request.headers:
            return refused(token, who, settings=chosen)
        offer = OFFERS.standing(token, who)
        if offer is None:
            return refused(token, who, settings=chosen)
        try:
            Workplace(offer.org_id, who, settings=chosen).require(offer.act)
        except Refused:
            OFFERS.take(token, offer)
            return nothing()
        if not OFFERS.take(token, offer):
            return refused(token, who, settings=chosen)
    except MemoryCoreError:
        return PlainTextResponse("Not now; trying again can help.\n", status_code=503, headers={"Retry-After": "5"})
    return Response(
        offer.content,
        headers={
            "Content-Type": offer.mime,
            "Content-Disposition": f'attachment; filename="{safe_name(offer.file_name)}"',
            "Accept-Ranges": "none",
            "Cache-Control": "no-store",
        },
    )


def refused(token: str, who: Identity | None, *, settings: Settings) -> Response:
    """Answer that there is nothing; where a file waits or waited there, that is on record in its organisation's trail.

    Without a database it cannot be, and the answer is the same: another would say that there is a file.
    """
    org_id = OFFERS.organisation_of(token)
    if org_id is not None:
        with suppress(MemoryCoreError):
            record_refusal(org_id, who, FETCH, settings=settings)
    return nothing()


def nothing() -> Response:
    """Return the one answer to every fetch that gets no file."""
    return PlainTextResponse(NOTHING, status_code=404, headers={"Cache-Control": "no-store"})


def safe_name(name: str) -> str:
    """Return a file's name of letters, digits and a few signs, which no header and no folder misreads."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".")[-100:] or "file"


ROUTE = Route(f"{PATH}{{token}}", fetch)
