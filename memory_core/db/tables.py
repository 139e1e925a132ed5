"""The tables, as the newest migration leaves them."""

from __future__ import annotations

from pgvector.sqlalchemy import HALFVEC
from sqlalchemy import (
    ARRAY,
    REAL,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    DateTime,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import TSVECTOR

metadata = MetaData()
INSTANT = DateTime(timezone=True)
IDENTIFIER = "^[A-Za-z0-9._:@/+-]{1,128}$"
PERSONS = "'applicant', 'candidate', 'contact', 'employee', 'interviewer', 'recruiter', 'referee'"


def is_identifier(column: str) -> str:
    r"""Return the SQL condition that the whole of a column is one identifier.

    PostgreSQL's ``$`` matches at the end only, never before a trailing newline.
    """
    return f"{column} ~ '{IDENTIFIER}'"


TYPOGRAPHIC = "‘’‚‛“”„‟«»‹›–—―…·•"


def plain(expression: str) -> str:
    """Return the SQL for a text with spaces for its typographic quotes and dashes.

    To a database whose locale is C they are letters, so that a word beside one would be another word.
    """
    return f"translate({expression}, '{TYPOGRAPHIC}', '{' ' * len(TYPOGRAPHIC)}')"


# Ids only: the one list from which work is taken organisation by organisation, so it has no row level security.
organisation = Table(
    "organisation",
    metadata,
    Column("org_id", Text, nullable=False),
    PrimaryKeyConstraint("org_id", name="organisation_pkey"),
    CheckConstraint(is_identifier("org_id"), name="org_id_is_an_identifier"),
)

organisation_setting = Table(
    "organisation_setting",
    metadata,
    Column("org_id", Text, nullable=False),
    Column("added_person_types", ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")),
    Column("maximum_days", Integer, nullable=False, server_default=text("365")),
    Column("embedding_model", Text),  # pinned with the first embedding
    Column("embedding_dimensions", Integer),
    PrimaryKeyConstraint("org_id", name="organisation_setting_pkey"),
    ForeignKeyConstraint(["org_id"], ["organisation.org_id"], name="setting_of_an_organisation"),
    CheckConstraint("maximum_days BETWEEN 1 AND 3650", name="maximum_is_within_ten_years"),
    CheckConstraint(
        "(embedding_model IS NULL) = (embedding_dimensions IS NULL)", name="pinned_model_has_its_dimensions"
    ),
    CheckConstraint("embedding_dimensions BETWEEN 1 AND 3900", name="dimensions_fit_in_a_page"),
    CheckConstraint(is_identifier("embedding_model"), name="embedding_model_is_an_identifier"),
)

memory = Table(
    "memory",
    metadata,
    Column("org_id", Text, nullable=False),
    Column("memory_id", Uuid, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject_type", Text),
    Column("subject_id", Text),
    Column("text", Text),
    Column("text_sha256", LargeBinary),  # what "the same sentence" is compared by; goes with the text
    Column("origin", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("source", Text),
    Column("created_at", INSTANT, nullable=False),
    Column("expires_at", INSTANT, nullable=False),
    Column("seen_count", Integer, nullable=False, server_default=text("1")),
    Column("last_seen_at", INSTANT, nullable=False),
    Column("last_seen_run_id", Text, nullable=False),
    Column("embedding", HALFVEC()),
    Column("embedding_model", Text),
    # Computed by the database from the text, and gone with it.
    Column("words", TSVECTOR, Computed(f"to_tsvector('english'::regconfig, {plain('text')})", persisted=True)),
    Column("restricted_at", INSTANT),
    Column("hold", Text),
    Column("forgotten_at", INSTANT),
    Column("forgotten_by", Text),
    Column("forgotten_reason", Text),
    Column("swept_at", INSTANT),
    PrimaryKeyConstraint("org_id", "memory_id", name="memory_pkey"),
    ForeignKeyConstraint(["org_id"], ["organisation.org_id"], name="memory_of_an_organisation"),
    CheckConstraint("kind IN ('fact', 'observation')", name="kind_is_known"),
    CheckConstraint("origin IN ('inference', 'person')", name="origin_is_known"),
    CheckConstraint("(subject_type IS NULL) = (subject_id IS NULL)", name="subject_has_type_and_id_or_neither"),
    CheckConstraint("kind <> 'observation' OR subject_id IS NOT NULL", name="observation_names_its_subject"),
    CheckConstraint(
        f"kind <> 'fact' OR subject_type IS NULL OR lower(subject_type) NOT IN ({PERSONS})",
        name="fact_is_not_about_a_person",
    ),
    CheckConstraint(
        "(text IS NOT NULL) = (forgotten_at IS NULL AND swept_at IS NULL)",
        name="text_is_there_until_forgotten_or_swept",
    ),
    CheckConstraint("char_length(text) BETWEEN 1 AND 2000", name="text_length"),
    CheckConstraint("text ~ '[^[:space:]]'", name="text_is_not_blank"),
    CheckConstraint(
        "(text IS NULL) = (text_sha256 IS NULL) AND text_sha256 = sha256(convert_to(text, 'UTF8'))",
        name="digest_is_of_the_text",
    ),
    CheckConstraint(
        "(embedding IS NULL) = (embedding_model IS NULL) AND (embedding IS NULL OR text IS NOT NULL)",
        name="embedding_has_its_model_and_text",
    ),
    CheckConstraint("embedding IS NULL OR vector_dims(embedding) <= 3900", name="embedding_fits_in_a_page"),
    CheckConstraint(
        "(origin <> 'person' OR author ~ '^user:.') AND (origin <> 'inference' OR author ~ '^agent:.')",
        name="author_matches_origin",
    ),
    CheckConstraint(
        "isfinite(expires_at) AND expires_at > created_at AND expires_at <= last_seen_at + interval '10 years'",
        name="expiry_is_after_creation_and_within_ten_years",
    ),
    CheckConstraint(
        "created_at >= '0001-01-02 00:00:00+00' AND last_seen_at < '9980-01-01 00:00:00+00'",
        name="instants_are_in_the_calendar",
    ),
    CheckConstraint("last_seen_at >= created_at AND seen_count >= 1", name="seen_since_it_was_created"),
    CheckConstraint(
        "(forgotten_at IS NULL) = (forgotten_by IS NULL) AND (forgotten_at IS NULL) = (forgotten_reason IS NULL)",
        name="tombstone_says_when_who_why",
    ),
    CheckConstraint("char_length(forgotten_reason) BETWEEN 1 AND 500", name="reason_length"),
    CheckConstraint("hold IS NULL OR text IS NOT NULL", name="hold_is_on_a_memory_with_text"),
    CheckConstraint(
        " AND ".join(
            [
                is_identifier("author"),
                is_identifier("run_id"),
                is_identifier("last_seen_run_id"),
                *(
                    f"({column} IS NULL OR {is_identifier(column)})"
                    for column in ("subject_type", "subject_id", "embedding_model", "hold", "forgotten_by")
                ),
            ]
        ),
        name="identifiers_have_their_shape",
    ),
    CheckConstraint(
        "source IS NULL OR (char_length(source) <= 512"
        " AND source ~ '^[A-Za-z0-9._:@/+-]{1,128}(,[A-Za-z0-9._:@/+-]{1,128})*$')",
        name="source_is_a_list_of_identifiers",
    ),
    # Of memories with text only: tombstones have no digest, and two of them are never the same sentence.
    Index(
        "same_sentence_is_one_memory",
        "org_id",
        "text_sha256",
        "kind",
        "origin",
        "author",
        "subject_type",
        "subject_id",
        unique=True,
        postgresql_nulls_not_distinct=True,
        postgresql_where=text("text_sha256 IS NOT NULL"),
    ),
    Index("memory_by_subject", "org_id", "subject_type", "subject_id"),
    Index(
        "memory_newest_first",
        "org_id",
        text("created_at DESC"),
        text("memory_id DESC"),
        postgresql_where=text("text IS NOT NULL AND restricted_at IS NULL"),
    ),
    Index(
        "memory_by_embedding_model",
        "org_id",
        "embedding_model",
        "expires_at",
        postgresql_where=text("text IS NOT NULL AND restricted_at IS NULL"),
    ),
)

# What a subject can be found by; the entry goes with the subject's last text.
directory = Table(
    "directory",
    metadata,
    Column("org_id", Text, nullable=False),
    Column("subject_type", Text, nullable=False),
    Column("subject_id", Text, nullable=False),
    Column("label", Text),
    Column("aliases", ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")),
    PrimaryKeyConstraint("org_id", "subject_type", "subject_id", name="directory_pkey"),
    ForeignKeyConstraint(["org_id"], ["organisation.org_id"], name="directory_of_an_organisation"),
    CheckConstraint(
        f"{is_identifier('subject_type')} AND {is_identifier('subject_id')}",
        name="directory_names_a_subject",
    ),
    CheckConstraint("char_length(label) BETWEEN 1 AND 200", name="label_length"),
    CheckConstraint("cardinality(aliases) <= 50", name="alias_count"),
    CheckConstraint(
        "coalesce(array_ndims(aliases), 1) = 1 AND array_position(aliases, NULL) IS NULL"
        " AND array_position(aliases, '') IS NULL AND char_length(array_to_string(aliases, '')) <= 10000",
        name="aliases_are_names",
    ),
    CheckConstraint("label IS NOT NULL OR cardinality(aliases) > 0", name="entry_has_a_name"),
)

recall = Table(
    "recall",
    metadata,
    Column("org_id", Text, nullable=False),
    Column("recall_id", Uuid, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("at", INSTANT, nullable=False),
    Column("mode", Text, nullable=False),
    Column("reason", Text),
    Column("ranking", Text, nullable=False),
    Column("boundary", Text),  # None: no block was shown
    Column("token_budget", Integer),
    Column("omitted", Integer, nullable=False),
    PrimaryKeyConstraint("org_id", "recall_id", name="recall_pkey"),
    ForeignKeyConstraint(["org_id"], ["organisation.org_id"], name="recall_of_an_organisation"),
    CheckConstraint("mode IN ('recency', 'semantic')", name="mode_is_known"),
    CheckConstraint("purpose IN ('preview', 'run')", name="purpose_is_known"),
    CheckConstraint("(mode = 'semantic') = (reason IS NULL)", name="recency_says_why"),
    CheckConstraint(is_identifier("boundary"), name="boundary_is_an_identifier"),
    CheckConstraint("reason ~ '^[A-Za-z'' ]{1,200}$'", name="recall_reason_is_plain"),
    CheckConstraint(is_identifier("run_id"), name="recall_names_its_run"),
    Index("recall_by_run", "org_id", "run_id"),
)

# Each row says itself to which run, for what and when, so that what was shown of a person is found from the memory alone.
disclosure = Table(
    "disclosure",
    metadata,
    Column("org_id", Text, nullable=False),
    Column("memory_id", Uuid, nullable=False),
    Column("recall_id", Uuid, nullable=False),
    Column("place", Integer, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("at", INSTANT, nullable=False),
    PrimaryKeyConstraint("org_id", "memory_id", "recall_id", name="disclosure_pkey"),
    ForeignKeyConstraint(["org_id", "recall_id"], ["recall.org_id", "recall.recall_id"], name="disclosure_of_a_recall"),
    ForeignKeyConstraint(["org_id", "memory_id"], ["memory.org_id", "memory.memory_id"], name="disclosure_of_a_memory"),
    CheckConstraint("place >= 1", name="place_counts_from_one"),
    CheckConstraint("purpose IN ('preview', 'run')", name="disclosure_purpose_is_known"),
    CheckConstraint(is_identifier("run_id"), name="disclosure_names_its_run"),
    Index("disclosure_by_place", "org_id", "recall_id", "place", unique=True),
)

# That an erasure was done, also when nothing was held; no text, ever.
erasure = Table(
    "erasure",
    metadata,
    Column("org_id", Text, nullable=False),
    Column("erasure_id", Uuid, nullable=False),
    Column("subject_type", Text, nullable=False),
    Column("subject_id", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("at", INSTANT, nullable=False),
    Column("memory_count", Integer, nullable=False),
    # The server's own clock, read once the subject is locked: a write that began before it is refused.
    Column("recorded_at", INSTANT, nullable=False, server_default=func.clock_timestamp()),
    PrimaryKeyConstraint("org_id", "erasure_id", name="erasure_pkey"),
    ForeignKeyConstraint(["org_id"], ["organisation.org_id"], name="erasure_of_an_organisation"),
    CheckConstraint(
        f"{is_identifier('subject_type')} AND {is_identifier('subject_id')} AND {is_identifier('by')}",
        name="erasure_names_subject_and_officer",
    ),
    CheckConstraint("char_length(reason) BETWEEN 1 AND 500", name="erasure_reason_length"),
    CheckConstraint("memory_count >= 0", name="erasure_counts_from_zero"),
    Index("erasure_by_subject", "org_id", "subject_type", "subject_id", "recorded_at"),
)

# One call to a chat model: sizes, times and outcomes, never a word of what was said. A call that began and has no end
# is still running, or was killed.
model_call = Table(
    "model_call",
    metadata,
    Column("org_id", Text, nullable=False),
    Column("call_id", Uuid, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("tier", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("digest", Text),
    Column("provider", Text, nullable=False),
    Column("started_at", INSTANT, nullable=False),
    Column("deadline_at", INSTANT, nullable=False),
    Column("ended_at", INSTANT),
    Column("estimated_tokens", Integer, nullable=False),
    Column("memory_tokens", Integer, nullable=False),
    # What counts under the ceiling of tokens a minute, until when: what was reserved, then what it came to.
    Column("counted_tokens", Integer, nullable=False),
    Column("counts_until", INSTANT, nullable=False),
    Column("queue_ms", REAL),
    Column("load_ms", REAL),
    Column("prompt_ms", REAL),
    Column("generation_ms", REAL),
    Column("first_chunk_ms", REAL),
    Column("first_answer_ms", REAL),
    Column("total_ms", REAL),
    Column("prompt_tokens", Integer),
    Column("output_tokens", Integer),
    Column("cached", Boolean),
    Column("cold", Boolean),
    Column("finish_reason", Text),
    Column("error_code", Text),
    Column("attempts", Integer),
    Column("tool_calls", Integer),
    Column("tool_calls_in_text", Integer),
    Column("tool_call_faults", Integer),
    Column("prompt_was_cut", Boolean),
    PrimaryKeyConstraint("org_id", "call_id", name="model_call_pkey"),
    ForeignKeyConstraint(["org_id"], ["organisation.org_id"], name="model_call_of_an_organisation"),
    CheckConstraint(
        " AND ".join(
            [
                is_identifier("run_id"),
                is_identifier("model"),
                f"(digest IS NULL OR {is_identifier('digest')})",
            ]
        ),
        name="model_call_names_run_and_model",
    ),
    CheckConstraint("tier IN ('balanced', 'deep', 'fast')", name="tier_is_known"),
    CheckConstraint("provider IN ('ollama', 'openai')", name="provider_is_known"),
    CheckConstraint(
        "finish_reason IN ('content_filter', 'length', 'other', 'stop', 'tool_calls')", name="finish_reason_is_known"
    ),
    CheckConstraint("error_code ~ '^gateway[.][a-z_]{1,40}$'", name="error_code_is_the_gateways"),
    CheckConstraint(
        "(ended_at IS NULL OR (total_ms IS NOT NULL AND attempts IS NOT NULL)) "
        "AND (ended_at IS NULL) = (finish_reason IS NULL AND error_code IS NULL) "
        "AND (finish_reason IS NULL OR error_code IS NULL)",
        name="ended_call_was_answered_or_failed",
    ),
    CheckConstraint(
        "ended_at >= started_at AND deadline_at > started_at AND counts_until >= started_at",
        name="call_ends_after_it_starts",
    ),
    CheckConstraint(
        "estimated_tokens >= 0 AND memory_tokens >= 0 AND counted_tokens >= 0 AND prompt_tokens >= 0 AND output_tokens >= 0 "
        "AND attempts >= 0 AND tool_calls >= 0 AND tool_calls_in_text >= 0 AND tool_call_faults >= 0",
        name="call_counts_from_zero",
    ),
    CheckConstraint(
        "least(queue_ms, load_ms, prompt_ms, generation_ms, first_chunk_ms, first_answer_ms, total_ms) >= 0 AND "
        "greatest(queue_ms, load_ms, prompt_ms, generation_ms, first_chunk_ms, first_answer_ms, total_ms) < 'Infinity'",
        name="call_times_count_from_zero",
    ),
    Index("model_call_by_time", "org_id", "started_at"),
    Index("model_call_by_run", "org_id", "run_id"),
    Index("model_call_counted", "org_id", "counts_until"),
)

# Every table whose rows belong to one organisation, and so is under forced row level security.
TENANT_TABLES = (organisation_setting, memory, directory, recall, disclosure, erasure, model_call)
