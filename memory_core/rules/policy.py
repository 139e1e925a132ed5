"""What an organisation may set for itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

PERSON_TYPES = frozenset({"candidate", "applicant", "employee", "recruiter", "interviewer", "referee", "contact"})
DEFAULT_EXPIRY = timedelta(days=90)
DEFAULT_MAXIMUM_DAYS = 365


@dataclass(frozen=True, kw_only=True)
class Policy:
    """One organisation's own settings; the defaults are the product's."""

    added_person_types: frozenset[str] = frozenset()
    maximum_days: int = DEFAULT_MAXIMUM_DAYS

    def is_person(self, subject_type: str) -> bool:
        """Say whether subjects of this type are persons, however it is written."""
        folded = subject_type.casefold()
        return folded in PERSON_TYPES or folded in {added.casefold() for added in self.added_person_types}
