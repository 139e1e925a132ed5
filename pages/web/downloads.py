"""Handing out a file that waits: to whoever asked for it, if they still may, once."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from memory_core.config import settings
from memory_core.errors import MemoryCoreError, Refused
from memory_core.workplace import Workplace
from pages.web.door import NOTHING
from pages.web.offers import OFFERS, PATH
from pages.web.signed_in import fetcher


def fetch(request: Request) -> Response:
    """Answer with the file that waits at an address, else that there is nothing; who asks is looked up now.

    A stranger's fetch, a HEAD or one for a part of it leaves the file where it is. Somebody who may not any more is on
    record in the trail, and the file is gone.
    """
    if request.method != "GET" or "range" in request.headers:
        return nothing()
    token = request.path_params["token"]
    try:
        chosen = settings()
        who = fetcher(request, settings=chosen)
        offer = OFFERS.standing(token, who)
        if offer is None:
            return nothing()
        try:
            Workplace(offer.org_id, who, settings=chosen).require(offer.act)
        except Refused:
            OFFERS.take(token, offer)
            return nothing()
        if not OFFERS.take(token, offer):
            return nothing()
    except Refused:
        return nothing()
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


def nothing() -> Response:
    """Return the one answer to every fetch that gets no file."""
    return PlainTextResponse(NOTHING, status_code=404, headers={"Cache-Control": "no-store"})


def safe_name(name: str) -> str:
    """Return a file's name of letters, digits and a few signs, which no header and no folder misreads."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".")[-100:] or "file"


ROUTE = Route(f"{PATH}{{token}}", fetch)
