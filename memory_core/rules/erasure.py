"""What an erasure must say of itself."""

from __future__ import annotations

from memory_core.characters import has_surrogate, is_blank
from memory_core.errors import Refusal
from memory_core.identifiers import identifier_refusal

MAX_REASON = 500


def reason_refusal(reason: object, *, field: str = "reason") -> Refusal | None:
    """Refuse a reason that is missing, blank, over 500 characters, or cannot be stored."""
    if not isinstance(reason, str) or is_blank(reason):
        return Refusal(rule="reason_is_given", field=field, reason="is missing; say why in a few words")
    if "\x00" in reason or has_surrogate(reason):
        return Refusal(rule="reason_is_storable", field=field, reason="has a NUL or a lone surrogate; remove it")
    if len(reason) > MAX_REASON:
        return Refusal(rule="reason_length", field=field, reason=f"has {len(reason)} characters; at most {MAX_REASON}")
    return None


def erasure_refusal(*, by: object, reason: object) -> Refusal | None:
    """Refuse an erasure that does not say who did it and why."""
    return identifier_refusal(by, field="by") or reason_refusal(reason)
