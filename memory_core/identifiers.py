"""The shape of an identifier: the one kind of text that may stand in a block outside quotation marks."""

from __future__ import annotations

import re

from memory_core.errors import Refusal

MAX_IDENTIFIER = 128
MAX_SOURCE = 512
IDENTIFIER = re.compile(rf"[A-Za-z0-9._:@/+-]{{1,{MAX_IDENTIFIER}}}")


def identifier_refusal(value: object, *, field: str) -> Refusal | None:
    """Refuse what is missing or is not 1 to 128 ASCII letters, digits and ``._:@/+-``."""
    if value is None or value == "":
        return Refusal(rule="identifier_is_given", field=field, reason="is missing; give an identifier")
    if not isinstance(value, str):
        return Refusal(rule="identifier_shape", field=field, reason=f"must be a string, not {type(value).__name__}")
    if not IDENTIFIER.fullmatch(value):
        return Refusal(
            rule="identifier_shape",
            field=field,
            reason=f"must be 1 to {MAX_IDENTIFIER} ASCII letters, digits or ._:@/+- with nothing before or after",
        )
    return None


def source_refusal(value: object) -> Refusal | None:
    """Refuse a source that is not one or several identifiers joined by commas, 512 characters in all."""
    if value is None:
        return None
    if not isinstance(value, str):
        return Refusal(rule="identifier_shape", field="source", reason=f"must be a string, not {type(value).__name__}")
    if len(value) > MAX_SOURCE:
        return Refusal(
            rule="source_length", field="source", reason=f"has {len(value)} characters; at most {MAX_SOURCE}"
        )
    for part in value.split(","):
        refused = identifier_refusal(part, field="source")
        if refused:
            return refused
    return None
