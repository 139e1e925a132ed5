"""What an organisation may set for its desk."""

from __future__ import annotations

from dataclasses import asdict

from memory_core.characters import has_surrogate, is_blank
from memory_core.errors import Refusal
from memory_core.rights import DeskSettings, Safeguards
from memory_core.rules.jurisdiction import jurisdiction
from memory_core.rules.today import zone_refusal

MAX_ANSWER = 4000
MOST_MEMORIES = 2_147_483_647  # that a column counts


def settings_refusal(new: DeskSettings) -> Refusal | None:
    """Refuse a place whose law is not known, a time zone that is none, an answer that cannot be stored."""
    if new.jurisdiction is not None:
        found = jurisdiction(new.jurisdiction)
        if isinstance(found, Refusal):
            return found
        if found.code != new.jurisdiction:
            reason = f"is written {found.code}"
            return Refusal(rule="jurisdiction_is_in_its_one_spelling", field="jurisdiction", reason=reason)
    if refused := zone_refusal(new.time_zone):
        return refused
    if not isinstance(new.tombstone_days, int) or not 365 <= new.tombstone_days <= 3650:
        reason = "must be 365 to 3,650: from one to ten years"
        return Refusal(rule="tombstones_stay_one_to_ten_years", field="tombstone_days", reason=reason)
    for name, answer in asdict(new.answers).items():
        if answer is None:
            continue
        if not isinstance(answer, str) or is_blank(answer) or "\x00" in answer or has_surrogate(answer):
            reason = "is blank or cannot be stored; leave it out, or write an answer"
            return Refusal(rule="answer_is_a_text", field=name, reason=reason)
        if len(answer) > MAX_ANSWER:
            reason = f"has {len(answer):,} characters; at most {MAX_ANSWER:,}"
            return Refusal(rule="answer_length", field=name, reason=reason)
    return None


def safeguards_refusal(new: Safeguards) -> Refusal | None:
    """Refuse a switch that is neither on nor off, and a number of memories that is none."""
    for name in ("preview_pseudonyms", "observations_leave"):
        if not isinstance(getattr(new, name), bool):
            return Refusal(rule="switch_is_on_or_off", field=name, reason="must be True or False")
    over = new.four_eyes_over
    if over is None or (isinstance(over, int) and not isinstance(over, bool) and 0 <= over <= MOST_MEMORIES):
        return None
    reason = "must be a number of memories, 0 or more; or None, so that a second officer is never asked for"
    return Refusal(rule="four_eyes_count_from_zero", field="four_eyes_over", reason=reason)
