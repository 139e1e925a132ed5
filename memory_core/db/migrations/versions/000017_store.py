"""The store: memories with their provenance, what was shown to whom, and what was erased.

Why: agents write sentences about people and act on them later. Holding those is defensible only if each says who or
what wrote it, belongs to one organisation, expires, and can be erased. What SQL can say of these rules stands here
under names that read, so that rows written by hand are refused as well.

Revision ID: 000017
"""

from alembic import context, op

revision = "000017"
down_revision = None
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE organisation (
    org_id TEXT NOT NULL,
    CONSTRAINT organisation_pkey PRIMARY KEY (org_id),
    CONSTRAINT org_id_is_an_identifier CHECK (org_id ~ '^[A-Za-z0-9._:@/+-]{1,128}$')
);

CREATE TABLE directory (
    org_id TEXT NOT NULL,
    subject_type TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    label TEXT,
    aliases TEXT[] DEFAULT '{}'::text[] NOT NULL,
    CONSTRAINT directory_pkey PRIMARY KEY (org_id, subject_type, subject_id),
    CONSTRAINT directory_of_an_organisation FOREIGN KEY(org_id) REFERENCES organisation (org_id),
    CONSTRAINT directory_names_a_subject CHECK (subject_type ~ '^[A-Za-z0-9._:@/+-]{1,128}$' AND subject_id ~ '^[A-Za-z0-9._:@/+-]{1,128}$'),
    CONSTRAINT label_length CHECK (char_length(label) BETWEEN 1 AND 200),
    CONSTRAINT alias_count CHECK (cardinality(aliases) <= 50),
    CONSTRAINT aliases_are_names CHECK (coalesce(array_ndims(aliases), 1) = 1 AND array_position(aliases, NULL) IS NULL AND array_position(aliases, '') IS NULL AND char_length(array_to_string(aliases, '')) <= 10000),
    CONSTRAINT entry_has_a_name CHECK (label IS NOT NULL OR cardinality(aliases) > 0)
);

CREATE TABLE erasure (
    org_id TEXT NOT NULL,
    erasure_id UUID NOT NULL,
    subject_type TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    by TEXT NOT NULL,
    reason TEXT NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    memory_count INTEGER NOT NULL,
    recorded_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT erasure_pkey PRIMARY KEY (org_id, erasure_id),
    CONSTRAINT erasure_of_an_organisation FOREIGN KEY(org_id) REFERENCES organisation (org_id),
    CONSTRAINT erasure_names_subject_and_officer CHECK (subject_type ~ '^[A-Za-z0-9._:@/+-]{1,128}$' AND subject_id ~ '^[A-Za-z0-9._:@/+-]{1,128}$' AND by ~ '^[A-Za-z0-9._:@/+-]{1,128}$'),
    CONSTRAINT erasure_reason_length CHECK (char_length(reason) BETWEEN 1 AND 500),
    CONSTRAINT erasure_counts_from_zero CHECK (memory_count >= 0)
);

CREATE INDEX erasure_by_subject ON erasure (org_id, subject_type, subject_id, recorded_at);

CREATE TABLE memory (
    org_id TEXT NOT NULL,
    memory_id UUID NOT NULL,
    kind TEXT NOT NULL,
    subject_type TEXT,
    subject_id TEXT,
    text TEXT,
    text_sha256 BYTEA,
    origin TEXT NOT NULL,
    author TEXT NOT NULL,
    run_id TEXT NOT NULL,
    source TEXT,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    seen_count INTEGER DEFAULT 1 NOT NULL,
    last_seen_at TIMESTAMP WITH TIME ZONE NOT NULL,
    last_seen_run_id TEXT NOT NULL,
    embedding HALFVEC,
    embedding_model TEXT,
    restricted_at TIMESTAMP WITH TIME ZONE,
    hold TEXT,
    forgotten_at TIMESTAMP WITH TIME ZONE,
    forgotten_by TEXT,
    forgotten_reason TEXT,
    swept_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT memory_pkey PRIMARY KEY (org_id, memory_id),
    CONSTRAINT memory_of_an_organisation FOREIGN KEY(org_id) REFERENCES organisation (org_id),
    CONSTRAINT kind_is_known CHECK (kind IN ('fact', 'observation')),
    CONSTRAINT origin_is_known CHECK (origin IN ('inference', 'person')),
    CONSTRAINT subject_has_type_and_id_or_neither CHECK ((subject_type IS NULL) = (subject_id IS NULL)),
    CONSTRAINT observation_names_its_subject CHECK (kind <> 'observation' OR subject_id IS NOT NULL),
    CONSTRAINT fact_is_not_about_a_person CHECK (kind <> 'fact' OR subject_type IS NULL OR lower(subject_type) NOT IN ('applicant', 'candidate', 'contact', 'employee', 'interviewer', 'recruiter', 'referee')),
    CONSTRAINT text_is_there_until_forgotten_or_swept CHECK ((text IS NOT NULL) = (forgotten_at IS NULL AND swept_at IS NULL)),
    CONSTRAINT text_length CHECK (char_length(text) BETWEEN 1 AND 2000),
    CONSTRAINT text_is_not_blank CHECK (text ~ '[^[:space:]]'),
    CONSTRAINT digest_is_of_the_text CHECK ((text IS NULL) = (text_sha256 IS NULL) AND text_sha256 = sha256(convert_to(text, 'UTF8'))),
    CONSTRAINT embedding_has_its_model_and_text CHECK ((embedding IS NULL) = (embedding_model IS NULL) AND (embedding IS NULL OR text IS NOT NULL)),
    CONSTRAINT embedding_fits_in_a_page CHECK (embedding IS NULL OR vector_dims(embedding) <= 3900),
    CONSTRAINT author_matches_origin CHECK ((origin <> 'person' OR author ~ '^user:.') AND (origin <> 'inference' OR author ~ '^agent:.')),
    CONSTRAINT expiry_is_after_creation_and_within_ten_years CHECK (isfinite(expires_at) AND expires_at > created_at AND expires_at <= last_seen_at + interval '10 years'),
    CONSTRAINT instants_are_in_the_calendar CHECK (created_at >= '0001-01-02 00:00:00+00' AND last_seen_at < '9980-01-01 00:00:00+00'),
    CONSTRAINT seen_since_it_was_created CHECK (last_seen_at >= created_at AND seen_count >= 1),
    CONSTRAINT tombstone_says_when_who_why CHECK ((forgotten_at IS NULL) = (forgotten_by IS NULL) AND (forgotten_at IS NULL) = (forgotten_reason IS NULL)),
    CONSTRAINT reason_length CHECK (char_length(forgotten_reason) BETWEEN 1 AND 500),
    CONSTRAINT hold_is_on_a_memory_with_text CHECK (hold IS NULL OR text IS NOT NULL),
    CONSTRAINT identifiers_have_their_shape CHECK (author ~ '^[A-Za-z0-9._:@/+-]{1,128}$' AND run_id ~ '^[A-Za-z0-9._:@/+-]{1,128}$' AND last_seen_run_id ~ '^[A-Za-z0-9._:@/+-]{1,128}$' AND (subject_type IS NULL OR subject_type ~ '^[A-Za-z0-9._:@/+-]{1,128}$') AND (subject_id IS NULL OR subject_id ~ '^[A-Za-z0-9._:@/+-]{1,128}$') AND (embedding_model IS NULL OR embedding_model ~ '^[A-Za-z0-9._:@/+-]{1,128}$') AND (hold IS NULL OR hold ~ '^[A-Za-z0-9._:@/+-]{1,128}$') AND (forgotten_by IS NULL OR forgotten_by ~ '^[A-Za-z0-9._:@/+-]{1,128}$')),
    CONSTRAINT source_is_a_list_of_identifiers CHECK (source IS NULL OR (char_length(source) <= 512 AND source ~ '^[A-Za-z0-9._:@/+-]{1,128}(,[A-Za-z0-9._:@/+-]{1,128})*$'))
);

CREATE INDEX memory_by_embedding_model ON memory (org_id, embedding_model, expires_at) WHERE text IS NOT NULL AND restricted_at IS NULL;

CREATE INDEX memory_by_subject ON memory (org_id, subject_type, subject_id);

CREATE UNIQUE INDEX same_sentence_is_one_memory ON memory (org_id, text_sha256, kind, origin, author, subject_type, subject_id) NULLS NOT DISTINCT WHERE text_sha256 IS NOT NULL;

CREATE INDEX memory_newest_first ON memory (org_id, created_at DESC, memory_id DESC) WHERE text IS NOT NULL AND restricted_at IS NULL;

CREATE TABLE organisation_setting (
    org_id TEXT NOT NULL,
    added_person_types TEXT[] DEFAULT '{}'::text[] NOT NULL,
    maximum_days INTEGER DEFAULT 365 NOT NULL,
    embedding_model TEXT,
    embedding_dimensions INTEGER,
    CONSTRAINT organisation_setting_pkey PRIMARY KEY (org_id),
    CONSTRAINT setting_of_an_organisation FOREIGN KEY(org_id) REFERENCES organisation (org_id),
    CONSTRAINT maximum_is_within_ten_years CHECK (maximum_days BETWEEN 1 AND 3650),
    CONSTRAINT pinned_model_has_its_dimensions CHECK ((embedding_model IS NULL) = (embedding_dimensions IS NULL)),
    CONSTRAINT dimensions_fit_in_a_page CHECK (embedding_dimensions BETWEEN 1 AND 3900),
    CONSTRAINT embedding_model_is_an_identifier CHECK (embedding_model ~ '^[A-Za-z0-9._:@/+-]{1,128}$')
);

CREATE TABLE recall (
    org_id TEXT NOT NULL,
    recall_id UUID NOT NULL,
    run_id TEXT NOT NULL,
    purpose TEXT NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    mode TEXT NOT NULL,
    reason TEXT,
    ranking TEXT NOT NULL,
    boundary TEXT,
    token_budget INTEGER,
    omitted INTEGER NOT NULL,
    CONSTRAINT recall_pkey PRIMARY KEY (org_id, recall_id),
    CONSTRAINT recall_of_an_organisation FOREIGN KEY(org_id) REFERENCES organisation (org_id),
    CONSTRAINT mode_is_known CHECK (mode IN ('recency', 'semantic')),
    CONSTRAINT purpose_is_known CHECK (purpose IN ('preview', 'run')),
    CONSTRAINT recency_says_why CHECK ((mode = 'semantic') = (reason IS NULL)),
    CONSTRAINT boundary_is_an_identifier CHECK (boundary ~ '^[A-Za-z0-9._:@/+-]{1,128}$'),
    CONSTRAINT recall_reason_is_plain CHECK (reason ~ '^[A-Za-z'' ]{1,200}$'),
    CONSTRAINT recall_names_its_run CHECK (run_id ~ '^[A-Za-z0-9._:@/+-]{1,128}$')
);

CREATE INDEX recall_by_run ON recall (org_id, run_id);

CREATE TABLE disclosure (
    org_id TEXT NOT NULL,
    memory_id UUID NOT NULL,
    recall_id UUID NOT NULL,
    place INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    purpose TEXT NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT disclosure_pkey PRIMARY KEY (org_id, memory_id, recall_id),
    CONSTRAINT disclosure_of_a_recall FOREIGN KEY(org_id, recall_id) REFERENCES recall (org_id, recall_id),
    CONSTRAINT disclosure_of_a_memory FOREIGN KEY(org_id, memory_id) REFERENCES memory (org_id, memory_id),
    CONSTRAINT place_counts_from_one CHECK (place >= 1),
    CONSTRAINT disclosure_purpose_is_known CHECK (purpose IN ('preview', 'run')),
    CONSTRAINT disclosure_names_its_run CHECK (run_id ~ '^[A-Za-z0-9._:@/+-]{1,128}$')
);

CREATE UNIQUE INDEX disclosure_by_place ON disclosure (org_id, recall_id, place);
"""

# One UPDATE must erase text and vector both, so the vector stays in its row.
STORAGE = "ALTER TABLE memory ALTER COLUMN embedding SET STORAGE PLAIN;"

# The planner's figures are samples of the rows, kept until the next ANALYZE: none is taken of what an erasure must reach.
NO_SAMPLES = """
ALTER TABLE memory ALTER COLUMN text SET STATISTICS 0;
ALTER TABLE memory ALTER COLUMN text_sha256 SET STATISTICS 0;
ALTER TABLE memory ALTER COLUMN embedding SET STATISTICS 0;
ALTER TABLE directory ALTER COLUMN label SET STATISTICS 0;
ALTER TABLE directory ALTER COLUMN aliases SET STATISTICS 0;
"""

TENANT_TABLES = ("organisation_setting", "memory", "directory", "recall", "disclosure", "erasure")

# A transaction-local setting falls back to '' and not to NULL: both mean that no organisation was named.
ROW_SECURITY = """
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
CREATE POLICY one_organisation ON {table}
    USING (org_id = nullif(current_setting('memory.org_id', true), ''))
    WITH CHECK (org_id = nullif(current_setting('memory.org_id', true), ''));
"""

# Provenance is written once: author, run, origin, subject and creation are in no UPDATE grant. Nothing is deleted but
# directory entries; recalls, disclosures and erasures are only ever added to.
GRANTS = """
GRANT USAGE ON SCHEMA {schema} TO {role};
GRANT SELECT ON alembic_version TO {role};
GRANT SELECT, INSERT ON organisation, recall, disclosure, erasure TO {role};
GRANT SELECT, INSERT, UPDATE (added_person_types, maximum_days, embedding_model, embedding_dimensions)
    ON organisation_setting TO {role};
GRANT SELECT, INSERT, DELETE, UPDATE (label, aliases) ON directory TO {role};
GRANT SELECT, INSERT, UPDATE (text, text_sha256, embedding, embedding_model, expires_at, seen_count, last_seen_at,
    last_seen_run_id, restricted_at, hold, forgotten_at, forgotten_by, forgotten_reason, swept_at)
    ON memory TO {role};
"""


def upgrade() -> None:
    op.execute("CREATE EXTENSION IF NOT EXISTS vector")
    for statement in statements(TABLES):
        op.execute(statement)
    op.execute(STORAGE)
    for statement in statements(NO_SAMPLES):
        op.execute(statement)
    for table in TENANT_TABLES:
        for statement in statements(ROW_SECURITY.format(table=table)):
            op.execute(statement)
    attributes = context.config.attributes
    grants = GRANTS.format(role=attributes["quoted_role"], schema=attributes["quoted_schema"])
    for statement in statements(grants):
        op.execute(statement.replace(":", "\\:"))  # a role's name may have a colon, which is no parameter


def downgrade() -> None:
    for table in ("disclosure", "recall", "erasure", "directory", "memory", "organisation_setting", "organisation"):
        op.drop_table(table)


def statements(script: str) -> list[str]:
    return [statement.strip() for statement in script.split(";\n") if statement.strip()]
