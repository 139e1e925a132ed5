"""Finding the request that an act answers."""

from __future__ import annotations

from sqlalchemy import Connection

from memory_core.db import requests
from memory_core.errors import Refusal, Refused
from memory_core.model import Subject
from memory_core.rights import RightsRequest
from memory_core.rules.requests import REFERENCE, acting_refusal


def answered_request(
    connection: Connection, org_id: str, reference: str | None, subject: Subject | None, *, needs_identity: bool = False
) -> RightsRequest | None:
    """Return the request of a reference.

    Raises `Refused` where there is none, it is about somebody else, or nothing may be done for it (yet).
    """
    if reference is None:
        return None
    is_one = isinstance(reference, str) and REFERENCE.fullmatch(reference)
    request = requests.with_reference(connection, org_id, reference) if is_one else None
    if request is None:
        reason = f"{str(reference)[:128]!r} is no request of this organisation"
        raise Refused(Refusal(rule="request_exists", field="reference", reason=reason))
    if subject is not None and request.subject != subject:
        about = request.subject or "nobody known yet"
        reason = f"{reference} is about {about}, not about {subject}"
        raise Refused(Refusal(rule="request_is_about_the_subject", field="reference", reason=reason))
    if refused := acting_refusal(request, needs_identity=needs_identity):
        raise Refused(refused)
    return request
