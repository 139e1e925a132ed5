"""The certificate of an erasure, to read and to take along."""

from __future__ import annotations

import json
from dataclasses import asdict
from uuid import UUID

import streamlit as st

from memory_core.privacy import PrivacyDesk
from memory_core.rights import Certificate
from memory_core.roles import Act
from pages import Visitor, explained, safe_frame
from pages.web.offering import download


def show_one_of(visitor: Visitor, desk: PrivacyDesk, erasures: list[UUID]) -> None:
    """Show the certificate of the newest erasure, or of the one that is chosen."""
    chosen = erasures[0]
    if len(erasures) > 1:
        chosen = st.selectbox(
            f"{len(erasures):,} erasures, newest first", erasures, format_func=str, key=f"certificate {erasures[-1]}"
        )
    show(visitor, desk, chosen)


def show(visitor: Visitor, desk: PrivacyDesk, erasure_id: UUID) -> None:
    """Show the certificate of an erasure, and offer it as a file."""
    st.subheader("Certificate of the erasure")
    with explained():
        certificate = desk.certificate(erasure_id)
    st.dataframe(
        safe_frame(rows(certificate)),
        hide_index=True,
        height=13 * 35 + 38,  # every line in sight
        column_config={
            "what": st.column_config.TextColumn("What is certified", width=200),
            "value": st.column_config.TextColumn("Value", width="large"),
        },
    )
    with st.expander("What a database and its backups keep for a while, and by what that ends"):
        st.text("\n\n".join(certificate.keeps))
    download(
        visitor,
        "Download the certificate",
        as_file(certificate),
        file_name=f"erasure-{certificate.erasure_id}.json",
        mime="application/json",
        act=Act.READ_REGISTER,
    )
    st.caption("It names nobody and quotes nothing: counts, identifiers, times, and a fingerprint of whom it is about.")


def rows(of: Certificate) -> list[dict[str, object]]:
    """Return a certificate line by line."""
    listed = {
        "Erasure": of.erasure_id,
        "Organisation": of.org_id,
        "Erased at": f"{of.at:%Y-%m-%d %H:%M:%S} UTC",
        "Erased by": of.by,
        "Request": of.request_reference or "none",
        "Tombstones about the person": f"{len(of.about_subject):,}",
        "Tombstones of others, erased with it": f"{len(of.about_others):,}",
        "Tombstones gone since, by retention": f"{of.purged:,}",
        "New memories stopped": "yes" if of.suppressed else "no",
        "Fingerprint of the person": of.subject_fingerprint,
        "Entry of the ledger outside": of.ledger_number or "none",
        "Line of the trail": of.trail_number or "none",
        "Hash of that line": of.trail_hash or "none",
    }
    return [{"what": what, "value": str(value)} for what, value in listed.items()]


def as_file(of: Certificate) -> str:
    """Return the whole certificate, every identifier included, as JSON."""
    return json.dumps(asdict(of) | {"at": of.at.isoformat(timespec="seconds")}, default=str, indent=1)
