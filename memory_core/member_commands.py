"""What each command about members does."""

from __future__ import annotations

import argparse
import dataclasses
from datetime import datetime

from memory_core import console
from memory_core.config import Settings
from memory_core.membership import Members
from memory_core.roles import Identity, Member


def run_add(options: argparse.Namespace, chosen: Settings) -> None:
    """Give an identity a role."""
    members = _members(options, chosen)
    added = members.add(_identity(options), options.role, name=options.name, email=options.email)
    console.answer(options, added, f"{added.name} is {added.role} of {added.org_id}")


def run_list(options: argparse.Namespace, chosen: Settings) -> None:
    """Print the members, each role on a line."""
    members = _members(options, chosen)
    found = members.listed(with_removed=options.removed)
    facts = {"org_id": members.org_id, "members": [dataclasses.asdict(one) for one in found]}
    console.answer(options, facts, "\n".join(map(member_line, found)) or f"{members.org_id} has no members")


def run_remove(options: argparse.Namespace, chosen: Settings) -> None:
    """Take one role from an identity, or all."""
    members = _members(options, chosen)
    identity = _identity(options)
    gone = sorted(members.remove(identity, options.role))
    facts = {"org_id": members.org_id, "identity": dataclasses.asdict(identity), "removed": gone}
    console.answer(options, facts, f"no longer {', '.join(gone)} of {members.org_id}")


def member_line(member: Member) -> str:
    """Describe one role of one member in one line."""
    who = f"{member.name} {member.role}" + (f" <{member.email}>" if member.email else "")
    line = f"{who}: {member.identity.subject} at {member.identity.issuer}"
    line += f", added {_day_and_by(member.added_at, member.added_by)}"
    if member.removed_at is not None:
        line += f", removed {_day_and_by(member.removed_at, member.removed_by)}"
    return console.one_line(line)


def _day_and_by(at: datetime, by: str | None) -> str:
    return f"{at:%Y-%m-%d} by {by}"


def _members(options: argparse.Namespace, chosen: Settings) -> Members:
    org_id = console.organisation(options.org) if options.org is not None else chosen.memory_org
    return Members.open(org_id, by=getattr(options, "by", None) or console.operator(), settings=chosen)


def _identity(options: argparse.Namespace) -> Identity:
    return Identity(issuer=options.issuer, subject=options.subject)
