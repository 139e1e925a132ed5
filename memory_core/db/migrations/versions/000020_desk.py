"""The desk of the data protection officer: requests, measures, corrections, the ledger of erasures, the trail.

Why: a store of sentences about people must answer those people within a month, and show later that it did. What was erased
must stay erased when a backup is restored, so each erasure is also a line that is copied out of the database. Who looked at
whom and did what is a trail that the application can add to and read, and nothing else, each line chained to the one before.

Revision ID: 000020
"""

from alembic import context, op

revision = "000020"
down_revision = "000019"
branch_labels = None
depends_on = None

COLUMNS = """
ALTER TABLE organisation ADD COLUMN ledger_id UUID DEFAULT gen_random_uuid() NOT NULL;

ALTER TABLE organisation_setting
    ADD COLUMN tombstone_days INTEGER DEFAULT 1095 NOT NULL,
    ADD COLUMN jurisdiction TEXT,
    ADD COLUMN time_zone TEXT DEFAULT 'UTC' NOT NULL,
    ADD COLUMN controller TEXT,
    ADD COLUMN officer TEXT,
    ADD COLUMN purposes TEXT,
    ADD COLUMN categories TEXT,
    ADD COLUMN recipients TEXT,
    ADD COLUMN retention TEXT,
    ADD COLUMN authority TEXT,
    ADD COLUMN automated_decisions TEXT,
    ADD COLUMN transfers TEXT,
    ADD COLUMN version INTEGER DEFAULT 0 NOT NULL,
    ADD CONSTRAINT tombstones_stay_one_to_ten_years CHECK (tombstone_days BETWEEN 365 AND 3650),
    ADD CONSTRAINT jurisdiction_is_a_code CHECK (jurisdiction ~ '^[A-Z]{2}(-[A-Z0-9]{1,3})?$'),
    ADD CONSTRAINT time_zone_is_a_name CHECK (time_zone ~ '^[A-Za-z0-9_+/-]{1,64}$'),
    ADD CONSTRAINT answer_length CHECK (least(char_length(controller), char_length(officer), char_length(purposes), char_length(categories), char_length(recipients), char_length(retention), char_length(authority), char_length(automated_decisions), char_length(transfers)) >= 1 AND greatest(char_length(controller), char_length(officer), char_length(purposes), char_length(categories), char_length(recipients), char_length(retention), char_length(authority), char_length(automated_decisions), char_length(transfers)) <= 4000);

ALTER TABLE memory
    ADD COLUMN erasure_id UUID,
    ADD COLUMN supersedes UUID,
    ADD COLUMN corrected_by TEXT,
    ADD COLUMN correction_reason TEXT,
    ADD COLUMN dispute TEXT,
    ADD COLUMN disputed_at TIMESTAMP WITH TIME ZONE,
    ADD COLUMN dispute_withdrawn_at TIMESTAMP WITH TIME ZONE,
    ADD CONSTRAINT correction_says_what_who_why CHECK ((supersedes IS NULL) = (corrected_by IS NULL) AND (supersedes IS NULL) = (correction_reason IS NULL)),
    ADD CONSTRAINT correction_reason_length CHECK (char_length(correction_reason) BETWEEN 1 AND 500),
    ADD CONSTRAINT corrector_is_an_identifier CHECK (corrected_by ~ '^[A-Za-z0-9._:@/+-]{1,128}$'),
    ADD CONSTRAINT dispute_stands_beside_a_text CHECK (dispute IS NULL OR (text IS NOT NULL AND disputed_at IS NOT NULL AND char_length(dispute) BETWEEN 1 AND 500)),
    ADD CONSTRAINT dispute_is_withdrawn_after_it_was_made CHECK (dispute_withdrawn_at IS NULL OR coalesce(dispute_withdrawn_at >= disputed_at, false));

CREATE INDEX memory_by_erasure ON memory (org_id, erasure_id) WHERE erasure_id IS NOT NULL;
CREATE INDEX memory_by_expiry ON memory (org_id, expires_at) WHERE text IS NOT NULL;
CREATE INDEX memory_by_run ON memory (org_id, run_id);

ALTER TABLE disclosure ADD COLUMN disputed BOOLEAN DEFAULT false NOT NULL;

ALTER TABLE erasure
    ADD COLUMN request_id UUID,
    ADD COLUMN salt BYTEA DEFAULT uuid_send(gen_random_uuid()) NOT NULL,
    ADD CONSTRAINT salt_length CHECK (octet_length(salt) = 16),
    ADD CONSTRAINT erasure_for_a_request FOREIGN KEY (org_id, request_id) REFERENCES rights_request (org_id, request_id);
"""

TABLES = """
CREATE TABLE rights_request (
    org_id TEXT NOT NULL,
    request_id UUID NOT NULL,
    reference TEXT NOT NULL,
    type TEXT NOT NULL,
    status TEXT NOT NULL,
    asked_by TEXT,
    channel TEXT NOT NULL,
    subject_type TEXT,
    subject_id TEXT,
    received_on DATE NOT NULL,
    identity_asked_on DATE,
    identity_method TEXT,
    identity_confirmed_on DATE,
    extended_on DATE,
    extension_reason TEXT,
    paused_on DATE[] DEFAULT '{}'::date[] NOT NULL,
    resumed_on DATE[] DEFAULT '{}'::date[] NOT NULL,
    closed_at TIMESTAMP WITH TIME ZONE,
    ground TEXT,
    closing_note TEXT,
    duplicate_of UUID,
    version INTEGER NOT NULL,
    changed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    changed_by TEXT NOT NULL,
    CONSTRAINT rights_request_pkey PRIMARY KEY (org_id, request_id),
    CONSTRAINT request_of_an_organisation FOREIGN KEY(org_id) REFERENCES organisation (org_id),
    CONSTRAINT duplicate_of_a_request FOREIGN KEY(org_id, duplicate_of) REFERENCES rights_request (org_id, request_id),
    CONSTRAINT request_type_is_known CHECK (type IN ('access', 'erasure', 'objection', 'portability', 'rectification', 'restriction')),
    CONSTRAINT request_status_is_known CHECK (status IN ('answered', 'duplicate', 'identity pending', 'in progress', 'received', 'refused', 'withdrawn')),
    CONSTRAINT reference_has_its_shape CHECK (reference ~ '^R-[0-9]{4}-[0-9]{4,9}$'),
    CONSTRAINT request_text_length CHECK (char_length(asked_by) BETWEEN 1 AND 200 AND char_length(channel) BETWEEN 1 AND 40 AND char_length(extension_reason) BETWEEN 1 AND 500 AND char_length(closing_note) BETWEEN 1 AND 500 AND char_length(identity_method) BETWEEN 1 AND 80 AND char_length(ground) BETWEEN 1 AND 80),
    CONSTRAINT request_names_subject_and_officer CHECK ((subject_type IS NULL) = (subject_id IS NULL) AND (subject_type IS NULL OR (subject_type ~ '^[A-Za-z0-9._:@/+-]{1,128}$' AND subject_id ~ '^[A-Za-z0-9._:@/+-]{1,128}$')) AND changed_by ~ '^[A-Za-z0-9._:@/+-]{1,128}$'),
    CONSTRAINT closed_says_when CHECK ((closed_at IS NULL) = (status IN ('identity pending', 'in progress', 'received'))),
    CONSTRAINT refused_says_on_what_ground CHECK ((status = 'refused') = (ground IS NOT NULL)),
    CONSTRAINT duplicate_says_of_what CHECK (status <> 'duplicate' OR duplicate_of IS NOT NULL),
    CONSTRAINT answered_after_identity CHECK (status <> 'answered' OR identity_confirmed_on IS NOT NULL),
    CONSTRAINT extension_says_why CHECK ((extended_on IS NULL) = (extension_reason IS NULL)),
    CONSTRAINT clock_is_resumed_after_a_pause CHECK (cardinality(paused_on) - cardinality(resumed_on) BETWEEN 0 AND 1),
    CONSTRAINT request_version_counts_from_one CHECK (version >= 1)
);

CREATE UNIQUE INDEX one_open_request_of_a_type ON rights_request (org_id, type, subject_type, subject_id) WHERE closed_at IS NULL AND subject_id IS NOT NULL;

CREATE UNIQUE INDEX request_by_reference ON rights_request (org_id, reference);

CREATE INDEX request_by_subject ON rights_request (org_id, subject_type, subject_id);

CREATE TABLE rights_request_change (
    org_id TEXT NOT NULL,
    request_id UUID NOT NULL,
    version INTEGER NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    by TEXT NOT NULL,
    act TEXT NOT NULL,
    changed JSONB NOT NULL,
    CONSTRAINT rights_request_change_pkey PRIMARY KEY (org_id, request_id, version),
    CONSTRAINT change_of_a_request FOREIGN KEY(org_id, request_id) REFERENCES rights_request (org_id, request_id),
    CONSTRAINT change_names_officer_and_act CHECK (by ~ '^[A-Za-z0-9._:@/+-]{1,128}$' AND act ~ '^[a-z -]{1,40}$'),
    CONSTRAINT change_is_by_field CHECK (jsonb_typeof(changed) = 'object')
);

CREATE TABLE measure (
    org_id TEXT NOT NULL,
    measure_id UUID NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    subject_type TEXT,
    subject_id TEXT,
    memory_id UUID,
    by TEXT NOT NULL,
    reason TEXT NOT NULL,
    placed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    review_on DATE,
    request_id UUID,
    lifted_at TIMESTAMP WITH TIME ZONE,
    lifted_by TEXT,
    lifted_reason TEXT,
    person_told BOOLEAN,
    CONSTRAINT measure_pkey PRIMARY KEY (org_id, measure_id),
    CONSTRAINT measure_of_an_organisation FOREIGN KEY(org_id) REFERENCES organisation (org_id),
    CONSTRAINT measure_for_a_request FOREIGN KEY(org_id, request_id) REFERENCES rights_request (org_id, request_id),
    CONSTRAINT kind_of_measure_is_known CHECK (kind IN ('hold', 'restriction', 'suppression')),
    CONSTRAINT measure_is_about_a_subject_or_a_memory CHECK ((subject_type IS NULL) = (subject_id IS NULL) AND (subject_id IS NOT NULL OR memory_id IS NOT NULL)),
    CONSTRAINT suppression_is_about_a_subject CHECK (kind <> 'suppression' OR (memory_id IS NULL)),
    CONSTRAINT measure_has_its_identifiers CHECK (name ~ '^[A-Za-z0-9._:@/+-]{1,128}$' AND by ~ '^[A-Za-z0-9._:@/+-]{1,128}$' AND (subject_type IS NULL OR subject_type ~ '^[A-Za-z0-9._:@/+-]{1,128}$') AND (subject_id IS NULL OR subject_id ~ '^[A-Za-z0-9._:@/+-]{1,128}$') AND (lifted_by IS NULL OR lifted_by ~ '^[A-Za-z0-9._:@/+-]{1,128}$')),
    CONSTRAINT measure_reason_length CHECK (char_length(reason) BETWEEN 1 AND 500 AND (lifted_reason IS NULL OR char_length(lifted_reason) BETWEEN 1 AND 500)),
    CONSTRAINT lifting_says_when_who_why CHECK ((lifted_at IS NULL) = (lifted_by IS NULL) AND (lifted_at IS NULL) = (lifted_reason IS NULL)),
    CONSTRAINT the_person_is_told_of_a_lifted_restriction CHECK (person_told IS NULL OR (kind = 'restriction' AND lifted_at IS NOT NULL))
);

CREATE INDEX measure_by_subject ON measure (org_id, subject_type, subject_id);

CREATE UNIQUE INDEX one_standing_hold_of_a_name ON measure (org_id, name, subject_type, subject_id, memory_id) NULLS NOT DISTINCT WHERE lifted_at IS NULL AND kind = 'hold';

CREATE UNIQUE INDEX one_standing_measure_of_a_kind ON measure (org_id, kind, subject_type, subject_id, memory_id) NULLS NOT DISTINCT WHERE lifted_at IS NULL AND kind <> 'hold';

CREATE TABLE ledger (
    org_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    entry_id UUID NOT NULL,
    act TEXT NOT NULL,
    subject_type TEXT,
    subject_id TEXT,
    memory_ids UUID[] NOT NULL,
    name TEXT,
    reference UUID,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    by TEXT NOT NULL,
    code TEXT NOT NULL,
    trail_number BIGINT NOT NULL,
    trail_hash BYTEA NOT NULL,
    CONSTRAINT ledger_pkey PRIMARY KEY (org_id, number),
    CONSTRAINT ledger_of_an_organisation FOREIGN KEY(org_id) REFERENCES organisation (org_id),
    CONSTRAINT ledger_act_is_known CHECK (act IN ('correct', 'forget', 'hold', 'lift', 'replay', 'restriction', 'suppression')),
    CONSTRAINT ledger_code_is_a_word CHECK (code ~ '^[a-z_]{1,40}$'),
    CONSTRAINT ledger_holds_identifiers CHECK (number >= 1 AND trail_number >= 1 AND octet_length(trail_hash) = 32 AND (subject_type IS NULL) = (subject_id IS NULL) AND by ~ '^[A-Za-z0-9._:@/+-]{1,128}$' AND (subject_type IS NULL OR subject_type ~ '^[A-Za-z0-9._:@/+-]{1,128}$') AND (subject_id IS NULL OR subject_id ~ '^[A-Za-z0-9._:@/+-]{1,128}$') AND (name IS NULL OR name ~ '^[A-Za-z0-9._:@/+-]{1,128}$'))
);

CREATE UNIQUE INDEX ledger_entry ON ledger (org_id, entry_id);

CREATE TABLE trail (
    org_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    by TEXT NOT NULL,
    act TEXT NOT NULL,
    subject_type TEXT,
    subject_id TEXT,
    reference TEXT,
    request TEXT,
    count BIGINT,
    reason TEXT,
    hash BYTEA NOT NULL,
    CONSTRAINT trail_pkey PRIMARY KEY (org_id, number),
    CONSTRAINT trail_of_an_organisation FOREIGN KEY(org_id) REFERENCES organisation (org_id),
    CONSTRAINT trail_act_is_words CHECK (act ~ '^[a-z -]{1,40}$'),
    CONSTRAINT trail_reason_length CHECK (char_length(reason) BETWEEN 1 AND 500),
    CONSTRAINT trail_holds_identifiers CHECK (number >= 1 AND octet_length(hash) = 32 AND (subject_type IS NULL) = (subject_id IS NULL) AND by ~ '^[A-Za-z0-9._:@/+-]{1,128}$' AND (subject_type IS NULL OR subject_type ~ '^[A-Za-z0-9._:@/+-]{1,128}$') AND (subject_id IS NULL OR subject_id ~ '^[A-Za-z0-9._:@/+-]{1,128}$') AND (reference IS NULL OR reference ~ '^[A-Za-z0-9._:@/+-]{1,128}$') AND (request IS NULL OR request ~ '^[A-Za-z0-9._:@/+-]{1,128}$'))
);

CREATE INDEX trail_by_reference ON trail (org_id, reference);

CREATE INDEX trail_by_request ON trail (org_id, request);

CREATE INDEX trail_by_subject ON trail (org_id, subject_type, subject_id, number);
"""

# The planner's samples would keep the words of what is erased.
NO_SAMPLES = """
ALTER TABLE memory ALTER COLUMN dispute SET STATISTICS 0;
ALTER TABLE rights_request ALTER COLUMN asked_by SET STATISTICS 0;
"""

TENANT_TABLES = ("rights_request", "rights_request_change", "measure", "ledger", "trail")

ROW_SECURITY = """
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
CREATE POLICY one_organisation ON {table}
    USING (org_id = nullif(current_setting('memory.org_id', true), ''))
    WITH CHECK (org_id = nullif(current_setting('memory.org_id', true), ''));
"""

# What is empty is never written again, and what was lifted stays lifted. A tombstone is deleted when its own retention is over, and what it was shown to with it. What has text can only be
# erased, by a statement that leaves a tombstone: a DELETE does not reach it, whoever writes it.
ONLY_WHAT_IS_EMPTY = """
CREATE POLICY a_tombstone_stays_one ON memory AS RESTRICTIVE FOR UPDATE USING (text IS NOT NULL) WITH CHECK (true);
CREATE POLICY what_is_lifted_stays_lifted ON measure AS RESTRICTIVE FOR UPDATE USING (lifted_at IS NULL) WITH CHECK (true);
CREATE POLICY only_what_is_empty_is_deleted ON memory AS RESTRICTIVE FOR DELETE USING (text IS NULL AND hold IS NULL);
CREATE POLICY only_of_what_is_empty ON disclosure AS RESTRICTIVE FOR DELETE USING (EXISTS (
    SELECT FROM memory AS shown
    WHERE shown.org_id = disclosure.org_id AND shown.memory_id = disclosure.memory_id AND shown.text IS NULL
));
"""

# The trail, the ledger and the history of a request are only ever added to.
GRANTS = """
GRANT SELECT, INSERT ON trail, ledger, rights_request_change TO {role};
GRANT SELECT, INSERT, UPDATE (status, asked_by, subject_type, subject_id, identity_asked_on, identity_method,
    identity_confirmed_on, extended_on, extension_reason, paused_on, resumed_on, closed_at, ground, closing_note,
    duplicate_of, version, changed_at, changed_by) ON rights_request TO {role};
GRANT SELECT, INSERT, UPDATE (lifted_at, lifted_by, lifted_reason, person_told) ON measure TO {role};
GRANT UPDATE (tombstone_days, jurisdiction, time_zone, controller, officer, purposes, categories, recipients,
    retention, authority, automated_decisions, transfers, version) ON organisation_setting TO {role};
GRANT DELETE, UPDATE (erasure_id, dispute, disputed_at, dispute_withdrawn_at) ON memory TO {role};
GRANT DELETE ON disclosure TO {role};
"""


def upgrade() -> None:
    # The tables before the columns, which refer to them.
    scripts = [
        TABLES,
        COLUMNS,
        NO_SAMPLES,
        *(ROW_SECURITY.format(table=table) for table in TENANT_TABLES),
        ONLY_WHAT_IS_EMPTY,
        GRANTS.format(role=context.config.attributes["quoted_role"]),
    ]
    for script in scripts:
        run(script)


def downgrade() -> None:
    run(DOWN.format(role=context.config.attributes["quoted_role"]))


DOWN = """
REVOKE DELETE ON memory, disclosure FROM {role};
DROP POLICY only_of_what_is_empty ON disclosure;
DROP POLICY a_tombstone_stays_one ON memory;
DROP POLICY only_what_is_empty_is_deleted ON memory;
ALTER TABLE erasure DROP COLUMN request_id, DROP COLUMN salt;
ALTER TABLE disclosure DROP COLUMN disputed;
DROP TABLE trail;
DROP TABLE ledger;
DROP TABLE measure;
DROP TABLE rights_request_change;
DROP TABLE rights_request;
ALTER TABLE memory DROP COLUMN erasure_id, DROP COLUMN supersedes, DROP COLUMN corrected_by, DROP COLUMN correction_reason,
    DROP COLUMN dispute, DROP COLUMN disputed_at, DROP COLUMN dispute_withdrawn_at;
DROP INDEX memory_by_run;
DROP INDEX memory_by_expiry;
ALTER TABLE organisation_setting DROP COLUMN tombstone_days, DROP COLUMN jurisdiction, DROP COLUMN time_zone,
    DROP COLUMN controller, DROP COLUMN officer, DROP COLUMN purposes, DROP COLUMN categories, DROP COLUMN recipients,
    DROP COLUMN retention, DROP COLUMN authority, DROP COLUMN automated_decisions, DROP COLUMN transfers, DROP COLUMN version;
ALTER TABLE organisation DROP COLUMN ledger_id;
"""


def run(script: str) -> None:
    for statement in script.split(";\n"):
        if statement.strip():
            op.execute(statement.strip().replace(":", "\\:"))  # a colon is no parameter
