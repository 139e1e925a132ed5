"""Members with their roles, the second officer's agreement, and what an organisation lets be seen and leave.

Why: a desk that holds what a system wrote about people must know who sits at it, as a provider of sign-ins says it and not as
they say themselves; and some acts are too heavy for one person alone. Roles are looked up at each act, so a removal counts at
once, and what was removed or decided stays so, whoever writes. Somebody who signs in is no organisation's yet: they read their
own standing rows, in all organisations, and nothing else.

Revision ID: 000022
"""

from alembic import context, op

revision = "000022"
down_revision = "000021"
branch_labels = None
depends_on = None

COLUMNS = """
ALTER TABLE organisation_setting
    ADD COLUMN preview_pseudonyms BOOLEAN DEFAULT false NOT NULL,
    ADD COLUMN four_eyes_over INTEGER,
    ADD COLUMN observations_leave BOOLEAN DEFAULT false NOT NULL,
    ADD COLUMN observations_leave_by TEXT,
    ADD COLUMN observations_leave_at TIMESTAMP WITH TIME ZONE,
    ADD CONSTRAINT four_eyes_count_from_zero CHECK (four_eyes_over >= 0),
    ADD CONSTRAINT leave_says_when_and_by_whom CHECK (observations_leave = (observations_leave_by IS NOT NULL) AND observations_leave = (observations_leave_at IS NOT NULL)),
    ADD CONSTRAINT whoever_lets_leave_is_an_identifier CHECK (observations_leave_by ~ '^[A-Za-z0-9._:@/+-]{1,128}$');

ALTER TABLE recall
    ADD COLUMN by TEXT,
    ADD COLUMN because TEXT,
    ADD CONSTRAINT whoever_recalls_is_an_identifier CHECK (by ~ '^[A-Za-z0-9._:@/+-]{1,128}$'),
    ADD CONSTRAINT because_is_somebodys CHECK (because IS NULL OR (by IS NOT NULL AND char_length(because) BETWEEN 1 AND 200));

ALTER TABLE agent_run ADD COLUMN observations_left_out BOOLEAN DEFAULT false NOT NULL;
"""

TABLES = """
CREATE TABLE member (
    org_id TEXT NOT NULL,
    member_id UUID NOT NULL,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    identity BYTEA NOT NULL,
    role TEXT NOT NULL,
    name TEXT NOT NULL,
    email TEXT,
    added_at TIMESTAMP WITH TIME ZONE NOT NULL,
    added_by TEXT NOT NULL,
    removed_at TIMESTAMP WITH TIME ZONE,
    removed_by TEXT,
    CONSTRAINT member_pkey PRIMARY KEY (org_id, member_id),
    CONSTRAINT member_of_an_organisation FOREIGN KEY(org_id) REFERENCES organisation (org_id),
    CONSTRAINT issuer_and_subject_length CHECK (char_length(issuer) BETWEEN 1 AND 255 AND char_length(subject) BETWEEN 1 AND 255),
    CONSTRAINT identity_is_of_issuer_and_subject CHECK (identity = sha256(int4send(octet_length(issuer)) || convert_to(issuer, 'UTF8') || int4send(octet_length(subject)) || convert_to(subject, 'UTF8'))),
    CONSTRAINT role_is_known CHECK (role IN ('admin', 'auditor', 'dpo', 'engineer')),
    CONSTRAINT name_is_a_users CHECK (name ~ '^user:.' AND name ~ '^[A-Za-z0-9._:@/+-]{1,128}$'),
    CONSTRAINT email_length CHECK (char_length(email) BETWEEN 3 AND 254),
    CONSTRAINT member_names_who_added_and_removed CHECK (added_by ~ '^[A-Za-z0-9._:@/+-]{1,128}$' AND (removed_by IS NULL OR removed_by ~ '^[A-Za-z0-9._:@/+-]{1,128}$')),
    CONSTRAINT removal_says_when_and_by_whom CHECK ((removed_at IS NULL) = (removed_by IS NULL))
);

CREATE INDEX member_by_identity ON member (identity) WHERE removed_at IS NULL;

CREATE UNIQUE INDEX one_standing_role_of_an_identity ON member (org_id, identity, role) WHERE removed_at IS NULL;

CREATE TABLE approval (
    org_id TEXT NOT NULL,
    approval_id UUID NOT NULL,
    act TEXT NOT NULL,
    fingerprint BYTEA NOT NULL,
    subject_type TEXT,
    subject_id TEXT,
    count BIGINT,
    reason TEXT NOT NULL,
    asked_by TEXT NOT NULL,
    asked_at TIMESTAMP WITH TIME ZONE NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    decided_by TEXT,
    decided_at TIMESTAMP WITH TIME ZONE,
    agreed BOOLEAN,
    used_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT approval_pkey PRIMARY KEY (org_id, approval_id),
    CONSTRAINT approval_of_an_organisation FOREIGN KEY(org_id) REFERENCES organisation (org_id),
    CONSTRAINT act_to_agree_to_is_known CHECK (act IN ('correct', 'erase', 'hand out a package', 'lift a hold')),
    CONSTRAINT fingerprint_length CHECK (octet_length(fingerprint) = 32),
    CONSTRAINT approval_names_type_and_id_or_neither CHECK ((subject_type IS NULL) = (subject_id IS NULL)),
    CONSTRAINT approval_has_its_identifiers CHECK (asked_by ~ '^[A-Za-z0-9._:@/+-]{1,128}$' AND (subject_type IS NULL OR subject_type ~ '^[A-Za-z0-9._:@/+-]{1,128}$') AND (subject_id IS NULL OR subject_id ~ '^[A-Za-z0-9._:@/+-]{1,128}$') AND (decided_by IS NULL OR decided_by ~ '^[A-Za-z0-9._:@/+-]{1,128}$')),
    CONSTRAINT approval_counts_from_zero CHECK (count >= 0),
    CONSTRAINT approval_reason_length CHECK (char_length(reason) BETWEEN 1 AND 500),
    CONSTRAINT approval_expires_after_it_is_asked_for CHECK (expires_at > asked_at),
    CONSTRAINT decision_says_when_who_what CHECK ((decided_at IS NULL) = (decided_by IS NULL) AND (decided_at IS NULL) = (agreed IS NULL)),
    CONSTRAINT somebody_else_decides CHECK (decided_by <> asked_by),
    CONSTRAINT only_what_is_agreed_to_is_used CHECK (used_at IS NULL OR coalesce(agreed, false))
);

CREATE INDEX approval_by_fingerprint ON approval (org_id, act, fingerprint);

CREATE INDEX approval_open ON approval (org_id, asked_at) WHERE decided_at IS NULL;
"""

TENANT_TABLES = ("member", "approval")

ROW_SECURITY = """
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
CREATE POLICY one_organisation ON {table}
    USING (org_id = nullif(current_setting('memory.org_id', true), ''))
    WITH CHECK (org_id = nullif(current_setting('memory.org_id', true), ''));
"""

# Encoded, and not the setting decoded: a setting that is no identity's then sees nothing, where decoding it would fail.
ONES_OWN_ROWS = """
CREATE POLICY ones_own_standing ON member FOR SELECT
    USING (encode(identity, 'hex') = current_setting('memory.identity', true) AND removed_at IS NULL);
"""

# What is decided is not decided again: an agreement can only be used, once. (A policy sees the new row; the old one is what a
# statement of its own still reads.)
WHAT_IS_DONE_STAYS_DONE = """
CREATE POLICY what_is_removed_stays_removed ON member AS RESTRICTIVE FOR UPDATE USING (removed_at IS NULL) WITH CHECK (true);
CREATE POLICY what_is_decided_stays_decided ON approval AS RESTRICTIVE FOR UPDATE
    USING (used_at IS NULL AND (decided_at IS NULL OR agreed))
    WITH CHECK (NOT EXISTS (
        SELECT FROM approval AS before
        WHERE before.org_id = approval.org_id AND before.approval_id = approval.approval_id AND before.agreed
            AND (before.decided_by, before.decided_at, before.agreed)
                IS DISTINCT FROM (approval.decided_by, approval.decided_at, approval.agreed)
    ));
"""

# Of a member, that they were removed; of an approval, what became of it.
GRANTS = """
GRANT SELECT, INSERT, UPDATE (removed_at, removed_by) ON member TO {role};
GRANT SELECT, INSERT, UPDATE (decided_by, decided_at, agreed, used_at) ON approval TO {role};
GRANT UPDATE (preview_pseudonyms, four_eyes_over, observations_leave, observations_leave_by, observations_leave_at)
    ON organisation_setting TO {role};
"""

DOWN = """
DROP TABLE approval;
DROP TABLE member;
ALTER TABLE agent_run DROP COLUMN observations_left_out;
ALTER TABLE recall DROP COLUMN by, DROP COLUMN because;
ALTER TABLE organisation_setting DROP COLUMN preview_pseudonyms, DROP COLUMN four_eyes_over,
    DROP COLUMN observations_leave, DROP COLUMN observations_leave_by, DROP COLUMN observations_leave_at;
"""


def upgrade() -> None:
    scripts = [
        COLUMNS,
        TABLES,
        *(ROW_SECURITY.format(table=table) for table in TENANT_TABLES),
        ONES_OWN_ROWS,
        WHAT_IS_DONE_STAYS_DONE,
        GRANTS.format(role=context.config.attributes["quoted_role"]),
    ]
    for script in scripts:
        run(script)


def downgrade() -> None:
    run(DOWN)


def run(script: str) -> None:
    for statement in script.split(";\n"):
        if statement.strip():
            op.execute(statement.strip().replace(":", "\\:"))  # a colon is no parameter
