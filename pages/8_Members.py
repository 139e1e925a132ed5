"""Members: who may do what in this organisation; who added them, and when they were removed."""

import streamlit as st

from memory_core.errors import Refused
from memory_core.roles import Act, Identity, Member, Role
from pages import Visitor, explained, gate, plain, require, safe_frame

MAY = {
    Role.DPO: "subjects, requests, packages, erasure, holds, trail",
    Role.ENGINEER: "recall previews, runs, latency, evals",
    Role.AUDITOR: "trail and register, read only",
    Role.ADMIN: "members and settings; no memories",
}


def listed(visitor: Visitor) -> list[Member]:
    """Show the members, the removed ones where that is asked for; return those who stand."""
    with_removed = st.toggle("Also those who were removed")
    with explained():
        found = visitor.work.members().listed(with_removed=with_removed)
    if not found:
        st.info("Nobody is a member yet. The first admin is added on the command line:")
        plain(
            f"python -m memory_core member add --org {visitor.org_id} --issuer ISSUER --subject SUBJECT --role admin "
            "--name user:NAME"
        )
        return []
    st.dataframe(
        safe_frame([row(one, with_removed=with_removed) for one in found]),
        hide_index=True,
        column_config={
            name: st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm")
            for name in ("added (UTC)", "removed (UTC)")
        },
    )
    return [one for one in found if one.removed_at is None]


def row(one: Member, *, with_removed: bool) -> dict[str, object]:
    """Return one role of a member as a row."""
    added: dict[str, object] = {
        "name": one.name,
        "role": one.role.value,
        "e-mail": one.email or "",
        "issuer": one.identity.issuer,
        "subject": one.identity.subject,
        "added (UTC)": one.added_at,
        "by": one.added_by,
    }
    return added | ({"removed (UTC)": one.removed_at, "removed by": one.removed_by or ""} if with_removed else {})


def add(visitor: Visitor) -> None:
    """Add a role of somebody."""
    st.subheader("Add a member")
    st.caption(
        "By issuer and subject, as the page shows them to somebody who signed in and is no member yet. An e-mail address "
        "alone is nobody."
    )
    with st.form("add a member", clear_on_submit=False, border=False):
        issuer = st.text_input("Issuer", placeholder="https://login.example.org", max_chars=255)
        subject = st.text_input("Subject", max_chars=255)
        name = st.text_input("Name on the trail", placeholder="user:ines", max_chars=128)
        email = st.text_input("E-mail, for people to recognise them", max_chars=254)
        role = st.selectbox("Role", list(Role), format_func=lambda one: f"{one.value}: {MAY[one]}")
        if st.form_submit_button("Add", type="primary"):
            require(visitor, Act.CHANGE_MEMBERS)
            try:
                identity = Identity(issuer=issuer.strip(), subject=subject.strip())
                visitor.work.members().add(identity, role, name=name.strip(), email=email.strip() or None)
            except Refused as refused:
                st.error("Nobody was added.")
                plain(str(refused))
            else:
                st.session_state["told"] = "Added. They have the role from their next click on."
                st.rerun()


def remove(visitor: Visitor, members: list[Member]) -> None:
    """Take a role away, after saying what that does."""
    st.subheader("Remove a member")
    chosen = st.selectbox(
        "Member and role",
        members,
        index=None,
        format_func=lambda one: f"{one.name}, {one.role.value}",
        placeholder="Choose one",
    )
    if chosen is None:
        return
    st.warning(
        "They lose this role at once, also where they are signed in now. What they did stays on the trail under their name."
    )
    if st.button("Remove this role", type="primary", icon=":material/person_remove:"):
        require(visitor, Act.CHANGE_MEMBERS)
        try:
            visitor.work.members().remove(chosen.identity, chosen.role)
        except Refused as refused:
            st.error("Nobody was removed.")
            plain(str(refused))
        else:
            st.session_state["told"] = "Removed."
            st.rerun()


visitor = gate(Act.READ_MEMBERS, title="Members")
st.title("Members")
if told := st.session_state.pop("told", None):
    st.success(told)
standing_members = listed(visitor)
if visitor.may(Act.CHANGE_MEMBERS):
    add(visitor)
    if standing_members:
        remove(visitor, standing_members)
