"""Under which names persons stand in what an engineer is shown."""

from __future__ import annotations

import hmac

from sqlalchemy import Connection

from memory_core.db import organisations, safeguards, subjects
from memory_core.prompt.pseudonyms import LEAST_KEY, Pseudonyms


def veil(connection: Connection, org_id: str, key: bytes | None) -> Pseudonyms | None:
    """Return a session's pseudonyms where the organisation requires them of previews; None where it does not.

    Without a key there are none either: whoever asks so may see the names. Raises ValueError for one that could be guessed.
    A person is whoever has a person's type, or an observation about them. In another organisation the same session has other
    pseudonyms.
    """
    if key is None:
        return None
    if len(key) < LEAST_KEY:
        raise ValueError(f"a key has {LEAST_KEY} bytes or more")
    if not safeguards.safeguards(connection, org_id).preview_pseudonyms:
        return None
    policy, observed = organisations.policy(connection, org_id), set(subjects.observed(connection, org_id))
    named = subjects.named(connection, org_id)
    persons = [one for one in named if policy.is_person(one.type) or one in observed]
    theirs = hmac.digest(key, org_id.encode(), "sha256")
    return Pseudonyms([*persons, *sorted(observed.difference(named), key=str)], theirs)
