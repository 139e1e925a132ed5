"""The rules for the names a subject can be found by."""

from __future__ import annotations

from memory_core.characters import has_surrogate, is_blank
from memory_core.errors import Refusal

MAX_LABEL = 200
MAX_ALIASES = 50


def name_refusal(value: object, *, field: str) -> Refusal | None:
    """Refuse a name that is blank, over 200 characters, or cannot be stored."""
    if not isinstance(value, str):
        return Refusal(rule="name_is_text", field=field, reason=f"must be a string, not {type(value).__name__}")
    if "\x00" in value or has_surrogate(value):
        return Refusal(rule="name_is_storable", field=field, reason="has a NUL or a lone surrogate; remove it")
    if is_blank(value):
        return Refusal(rule="name_is_not_blank", field=field, reason="is blank; leave it out instead")
    if len(value) > MAX_LABEL:
        return Refusal(rule="name_length", field=field, reason=f"has {len(value)} characters; at most {MAX_LABEL}")
    return None


def label_refusal(label: object) -> Refusal | None:
    """Refuse a label that is neither None nor a usable name."""
    return None if label is None else name_refusal(label, field="subject.label")


def alias_refusal(aliases: object) -> Refusal | None:
    """Refuse aliases that are not a list of at most 50 usable names."""
    if not isinstance(aliases, tuple | list):
        return Refusal(
            rule="aliases_are_a_list",
            field="subject.aliases",
            reason=f"must be a list of strings, not {type(aliases).__name__}",
        )
    if len(aliases) > MAX_ALIASES:
        return Refusal(rule="alias_count", field="subject.aliases", reason=f"has {len(aliases)}; at most {MAX_ALIASES}")
    for alias in aliases:
        refused = name_refusal(alias, field="subject.aliases")
        if refused:
            return refused
    return None
