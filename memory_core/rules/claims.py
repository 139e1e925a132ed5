"""Whether what a provider said of somebody is enough to know who they are now."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from memory_core.errors import Refusal, Refused
from memory_core.roles import Identity

AHEAD_S = 300  # by which a provider's clock may be ahead of ours


def identity_of(
    claims: Mapping[str, object], *, now: datetime, session: timedelta, since: datetime | None = None
) -> Identity | Refusal:
    """Return who somebody is by the claims of their sign-in, or why that is not known (any more).

    A sign-in lasts as long as a `session`, and where `since` is given it must not be older than that.

    The signature, the audience and the nonce were checked when the claims came in. An e-mail address that is given must be
    verified, although nothing is decided by it: an account with somebody else's address is an account to keep out.
    """
    try:
        identity = Identity(issuer=claims.get("iss"), subject=claims.get("sub"))  # type: ignore[arg-type]
    except Refused:
        return Refusal(rule="sign_in_names_somebody", field="sign-in", reason="the provider did not say who you are")
    if claims.get("email") and claims.get("email_verified") is not True:
        reason = "your e-mail address is not verified with the provider; verify it there, then sign in again"
        return Refusal(rule="email_is_verified", field="sign-in", reason=reason)
    issued = claims.get("iat")
    if isinstance(issued, bool) or not isinstance(issued, int | float):
        return Refusal(rule="sign_in_has_a_time", field="sign-in", reason="the provider did not say when you signed in")
    try:
        at = datetime.fromtimestamp(issued, UTC)
    except (OverflowError, OSError, ValueError):
        return Refusal(rule="sign_in_has_a_time", field="sign-in", reason="the provider did not say when you signed in")
    if at > now + timedelta(seconds=AHEAD_S):
        return Refusal(rule="sign_in_has_a_time", field="sign-in", reason="the provider's clock is ahead of ours")
    if now - at >= session:
        hours = session.total_seconds() / 3600
        reason = f"you signed in more than {hours:g} hours ago; sign in again"
        return Refusal(rule="session_is_not_over", field="sign-in", reason=reason)
    if since is not None and at < since:
        reason = "the workbench was started anew since you signed in; sign in again"
        return Refusal(rule="session_is_not_over", field="sign-in", reason=reason)
    return identity
