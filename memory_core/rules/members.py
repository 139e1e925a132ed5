"""Who may be made a member of an organisation, under what name, and whose membership may be taken away."""

from __future__ import annotations

from collections.abc import Sequence

from memory_core.characters import is_invisible
from memory_core.errors import Refusal, Refused
from memory_core.identifiers import identifier_refusal
from memory_core.roles import LOCAL, Identity, Member, Role, Standing

MAX_EMAIL = 254
RESERVED = frozenset({LOCAL.name, "user:unnamed", "user:root"})


def role_of(value: object) -> Role:
    """Return the role that is meant; raises `Refused` for what is none."""
    try:
        return Role(value)  # type: ignore[arg-type]
    except ValueError:
        reason = f"is not known; use {', '.join(Role)}"
        raise Refused(Refusal(rule="role_is_known", field="role", reason=reason)) from None


def name_refusal(name: object) -> Refusal | None:
    """Refuse what cannot stand in the trail as a person's name."""
    if refused := identifier_refusal(name, field="name"):
        return refused
    if not str(name).startswith("user:") or name == "user:":
        reason = "is what the trail calls them, and so begins with user:, such as user:ines"
        return Refusal(rule="name_is_a_users", field="name", reason=reason)
    if name in RESERVED or name != str(name).lower():
        reason = "must be in small letters, and none that the product itself writes into the trail"
        return Refusal(rule="name_is_a_persons", field="name", reason=reason)
    return None


def email_refusal(email: object) -> Refusal | None:
    """Refuse what nobody could recognise as an address; whether mail arrives there is not asked."""
    if email is None:
        return None
    whole = isinstance(email, str) and len(email) <= MAX_EMAIL and not any(map(is_unwritten, email))
    if not whole or [bool(part) for part in str(email).split("@")] != [True, True]:
        reason = f"must be one address such as ines@example.org, of at most {MAX_EMAIL} characters; or leave it out"
        return Refusal(rule="email_is_one_address", field="email", reason=reason)
    return None


def is_unwritten(character: str) -> bool:
    """Say whether a character has no place in an address: white space, or nothing that can be seen."""
    return character.isspace() or is_invisible(character)


def adding_refusal(role: Role, name: str, *, by: str, standing: Standing | None, name_taken: bool) -> Refusal | None:
    """Refuse a name that is somebody else's, a second name for one identity, a role that stands already.

    `by` is who adds: no admin makes an officer of themselves.
    """
    if by == (standing.name if standing else name):
        reason = (
            f"is {by}'s own; another admin has to add it, or whoever runs the server: python -m memory_core member add"
        )
        return Refusal(rule="nobody_adds_to_their_own_roles", field="role", reason=reason)
    if name_taken:
        reason = f"{name} is another identity's here, or was, and what the trail says of it stays theirs; choose another name"
        return Refusal(rule="name_is_one_persons", field="name", reason=reason)
    if standing is None:
        return None
    if standing.name != name:
        reason = f"this identity is {standing.name} here; use that name, or remove the member first"
        return Refusal(rule="identity_has_one_name", field="name", reason=reason)
    if role in standing.roles:
        return Refusal(rule="member_is_there", field="role", reason=f"{name} is {role} here already; nothing to do")
    return None


def removing_refusal(everyone: Sequence[Member], identity: Identity, role: Role | None) -> Refusal | None:
    """Refuse to remove what does not stand, and the last admin while anybody else stands."""
    going = [one for one in everyone if one.identity == identity and role in (None, one.role)]
    if not going:
        what = "is no member here" if role is None else f"is not {role} here"
        return Refusal(rule="member_exists", field="identity", reason=f"{what}; list the members to see who is")
    staying = [one for one in everyone if one not in going]
    admins = [one for one in staying if one.role is Role.ADMIN]
    if staying and not admins and any(one.role is Role.ADMIN for one in going):
        reason = "is the last admin, and others are members; make somebody else admin first, or remove the others"
        return Refusal(rule="somebody_can_add_members", field="role", reason=reason)
    return None
