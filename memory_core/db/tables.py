"""The tables, as the newest migration leaves them."""

from __future__ import annotations

from pgvector.sqlalchemy import HALFVEC
from sqlalchemy import (
    ARRAY,
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    Date,
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
from sqlalchemy.dialects.postgresql import JSONB, TSVECTOR

metadata = MetaData()
INSTANT = DateTime(timezone=True)
IDENTIFIER = "^[A-Za-z0-9._:@/+-]{1,128}$"
PERSONS = "'applicant', 'candidate', 'contact', 'employee', 'interviewer', 'recruiter', 'referee'"


def is_identifier(column: str) -> str:
    r"""Return the SQL condition that the whole of a column is one identifier.

    PostgreSQL's ``$`` matches at the end only, never before a trailing newline.
    """
    return f"{column} ~ '{IDENTIFIER}'"


def are_identifiers(column: str) -> str:
    """Return the SQL condition that an array is a plain list of identifiers, or empty: no other dimension, no NULL in it.

    A CHECK takes no subquery, so that the elements are looked at together.
    """
    together = f"array_to_string({column}, ',')"
    one = IDENTIFIER.strip("^$")
    return f"{column} = string_to_array({together}, ',') AND {together} ~ '^({one}(,{one})*)?$'"


# How a run ended: by our own word, or by the code of the gateway's error.
TERMINATIONS = "Completed|ToolFailure|Deadline|TurnLimit|Cancelled|gateway[.][a-z_]{1,40}"

TYPOGRAPHIC = "‘’‚‛“”„‟«»‹›–—―…·•"


def plain(expression: str) -> str:
    """Return the SQL for a text with spaces for its typographic quotes and dashes.

    To a database whose locale is C they are letters, so that a word beside one would be another word.
    """
    return f"translate({expression}, '{TYPOGRAPHIC}', '{' ' * len(TYPOGRAPHIC)}')"


# What an organisation answers everybody who asks for access (GDPR Art. 15).
ANSWERS = (
    "controller",
    "officer",
    "purposes",
    "categories",
    "recipients",
    "retention",
    "authority",
    "automated_decisions",
    "transfers",
)

# Ids only: the one list from which work is taken organisation by organisation, so it has no row level security.
organisation = Table(
    "organisation",
    metadata,
    Column("org_id", Text, nullable=False),
    # By which the ledger outside knows this database again, also when it was restored from a backup.
    Column("ledger_id", Uuid, nullable=False, server_default=func.gen_random_uuid()),
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
    Column("tombstone_days", Integer, nullable=False, server_default=text("1095")),
    Column("jurisdiction", Text),  # None: no holidays are known, so that a deadline is never too late
    Column("time_zone", Text, nullable=False, server_default=text("'UTC'")),
    *(Column(name, Text) for name in ANSWERS),
    Column("version", Integer, nullable=False, server_default=text("0")),  # of what the desk sets
    Column("preview_pseudonyms", Boolean, nullable=False, server_default=text("false")),
    Column("four_eyes_over", Integer),  # None: a second officer is not asked for
    # Whether what is remembered about persons may go to a model outside, since when and by whom.
    Column("observations_leave", Boolean, nullable=False, server_default=text("false")),
    Column("observations_leave_by", Text),
    Column("observations_leave_at", INSTANT),
    PrimaryKeyConstraint("org_id", name="organisation_setting_pkey"),
    ForeignKeyConstraint(["org_id"], ["organisation.org_id"], name="setting_of_an_organisation"),
    CheckConstraint("maximum_days BETWEEN 1 AND 3650", name="maximum_is_within_ten_years"),
    CheckConstraint(
        "(embedding_model IS NULL) = (embedding_dimensions IS NULL)", name="pinned_model_has_its_dimensions"
    ),
    CheckConstraint("embedding_dimensions BETWEEN 1 AND 3900", name="dimensions_fit_in_a_page"),
    CheckConstraint(is_identifier("embedding_model"), name="embedding_model_is_an_identifier"),
    CheckConstraint("tombstone_days BETWEEN 365 AND 3650", name="tombstones_stay_one_to_ten_years"),
    CheckConstraint("jurisdiction ~ '^[A-Z]{2}(-[A-Z0-9]{1,3})?$'", name="jurisdiction_is_a_code"),
    CheckConstraint("time_zone ~ '^[A-Za-z0-9_+/-]{1,64}$'", name="time_zone_is_a_name"),
    CheckConstraint(
        f"least({', '.join(f'char_length({name})' for name in ANSWERS)}) >= 1"
        f" AND greatest({', '.join(f'char_length({name})' for name in ANSWERS)}) <= 4000",
        name="answer_length",
    ),
    CheckConstraint("four_eyes_over >= 0", name="four_eyes_count_from_zero"),
    CheckConstraint(
        "observations_leave = (observations_leave_by IS NOT NULL) AND observations_leave = (observations_leave_at IS NOT NULL)",
        name="leave_says_when_and_by_whom",
    ),
    CheckConstraint(is_identifier("observations_leave_by"), name="whoever_lets_leave_is_an_identifier"),
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
    Column("erasure_id", Uuid),  # which erasure emptied it
    # A correction: what it took the place of. No foreign key, since the tombstone is purged before it.
    Column("supersedes", Uuid),
    Column("corrected_by", Text),
    Column("correction_reason", Text),
    # The person's own words beside a memory; they go with its text.
    Column("dispute", Text),
    Column("disputed_at", INSTANT),
    Column("dispute_withdrawn_at", INSTANT),
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
        "(supersedes IS NULL) = (corrected_by IS NULL) AND (supersedes IS NULL) = (correction_reason IS NULL)",
        name="correction_says_what_who_why",
    ),
    CheckConstraint("char_length(correction_reason) BETWEEN 1 AND 500", name="correction_reason_length"),
    CheckConstraint(is_identifier("corrected_by"), name="corrector_is_an_identifier"),
    CheckConstraint(
        "dispute IS NULL OR (text IS NOT NULL AND disputed_at IS NOT NULL AND char_length(dispute) BETWEEN 1 AND 500)",
        name="dispute_stands_beside_a_text",
    ),
    CheckConstraint(
        "dispute_withdrawn_at IS NULL OR coalesce(dispute_withdrawn_at >= disputed_at, false)",
        name="dispute_is_withdrawn_after_it_was_made",
    ),
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
    Index("memory_by_erasure", "org_id", "erasure_id", postgresql_where=text("erasure_id IS NOT NULL")),
    Index("memory_by_run", "org_id", "run_id"),
    # Of the few that another run said again.
    Index("memory_seen_again", "org_id", "last_seen_run_id", postgresql_where=text("last_seen_run_id <> run_id")),
    Index("memory_by_expiry", "org_id", "expires_at", postgresql_where=text("text IS NOT NULL")),
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
    Column("by", Text),  # who looked at a preview, and what for
    Column("because", Text),
    PrimaryKeyConstraint("org_id", "recall_id", name="recall_pkey"),
    ForeignKeyConstraint(["org_id"], ["organisation.org_id"], name="recall_of_an_organisation"),
    CheckConstraint("mode IN ('recency', 'semantic')", name="mode_is_known"),
    CheckConstraint("purpose IN ('preview', 'run')", name="purpose_is_known"),
    CheckConstraint("(mode = 'semantic') = (reason IS NULL)", name="recency_says_why"),
    CheckConstraint(is_identifier("boundary"), name="boundary_is_an_identifier"),
    CheckConstraint("reason ~ '^[A-Za-z'' ]{1,200}$'", name="recall_reason_is_plain"),
    CheckConstraint(is_identifier("run_id"), name="recall_names_its_run"),
    CheckConstraint(is_identifier("by"), name="whoever_recalls_is_an_identifier"),
    CheckConstraint(
        "because IS NULL OR (by IS NOT NULL AND char_length(because) BETWEEN 1 AND 200)", name="because_is_somebodys"
    ),
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
    Column("disputed", Boolean, nullable=False, server_default=text("false")),  # whether a dispute was shown beside it
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
    Column("request_id", Uuid),  # which request it answered
    # With it a certificate names the subject by a fingerprint that only this database can check.
    Column("salt", LargeBinary, nullable=False, server_default=text("uuid_send(gen_random_uuid())")),
    PrimaryKeyConstraint("org_id", "erasure_id", name="erasure_pkey"),
    ForeignKeyConstraint(
        ["org_id", "request_id"], ["rights_request.org_id", "rights_request.request_id"], name="erasure_for_a_request"
    ),
    CheckConstraint("octet_length(salt) = 16", name="salt_length"),
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

# A request of the register, as it stands. Who asked is there until the register's own retention is over.
rights_request = Table(
    "rights_request",
    metadata,
    Column("org_id", Text, nullable=False),
    Column("request_id", Uuid, nullable=False),
    Column("reference", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("asked_by", Text),
    Column("channel", Text, nullable=False),
    Column("subject_type", Text),
    Column("subject_id", Text),
    Column("received_on", Date, nullable=False),
    Column("identity_asked_on", Date),
    Column("identity_method", Text),
    Column("identity_confirmed_on", Date),
    Column("extended_on", Date),
    Column("extension_reason", Text),
    Column("paused_on", ARRAY(Date), nullable=False, server_default=text("'{}'::date[]")),
    Column("resumed_on", ARRAY(Date), nullable=False, server_default=text("'{}'::date[]")),
    Column("closed_at", INSTANT),
    Column("ground", Text),
    Column("closing_note", Text),
    Column("duplicate_of", Uuid),
    Column("version", Integer, nullable=False),
    Column("changed_at", INSTANT, nullable=False),
    Column("changed_by", Text, nullable=False),
    PrimaryKeyConstraint("org_id", "request_id", name="rights_request_pkey"),
    ForeignKeyConstraint(["org_id"], ["organisation.org_id"], name="request_of_an_organisation"),
    ForeignKeyConstraint(
        ["org_id", "duplicate_of"],
        ["rights_request.org_id", "rights_request.request_id"],
        name="duplicate_of_a_request",
    ),
    CheckConstraint(
        "type IN ('access', 'erasure', 'objection', 'portability', 'rectification', 'restriction')",
        name="request_type_is_known",
    ),
    CheckConstraint(
        "status IN ('answered', 'duplicate', 'identity pending', 'in progress', 'received', 'refused', 'withdrawn')",
        name="request_status_is_known",
    ),
    CheckConstraint("reference ~ '^R-[0-9]{4}-[0-9]{4,9}$'", name="reference_has_its_shape"),
    CheckConstraint(
        "char_length(asked_by) BETWEEN 1 AND 200 AND char_length(channel) BETWEEN 1 AND 40"
        " AND char_length(extension_reason) BETWEEN 1 AND 500 AND char_length(closing_note) BETWEEN 1 AND 500"
        " AND char_length(identity_method) BETWEEN 1 AND 80 AND char_length(ground) BETWEEN 1 AND 80",
        name="request_text_length",
    ),
    CheckConstraint(
        "(subject_type IS NULL) = (subject_id IS NULL)"
        f" AND (subject_type IS NULL OR ({is_identifier('subject_type')} AND {is_identifier('subject_id')}))"
        f" AND {is_identifier('changed_by')}",
        name="request_names_subject_and_officer",
    ),
    CheckConstraint(
        "(closed_at IS NULL) = (status IN ('identity pending', 'in progress', 'received'))", name="closed_says_when"
    ),
    CheckConstraint("(status = 'refused') = (ground IS NOT NULL)", name="refused_says_on_what_ground"),
    CheckConstraint("status <> 'duplicate' OR duplicate_of IS NOT NULL", name="duplicate_says_of_what"),
    CheckConstraint("status <> 'answered' OR identity_confirmed_on IS NOT NULL", name="answered_after_identity"),
    CheckConstraint("(extended_on IS NULL) = (extension_reason IS NULL)", name="extension_says_why"),
    CheckConstraint(
        "cardinality(paused_on) - cardinality(resumed_on) BETWEEN 0 AND 1", name="clock_is_resumed_after_a_pause"
    ),
    CheckConstraint("version >= 1", name="request_version_counts_from_one"),
    Index("request_by_reference", "org_id", "reference", unique=True),
    Index("request_by_subject", "org_id", "subject_type", "subject_id"),
    Index(
        "one_open_request_of_a_type",
        "org_id",
        "type",
        "subject_type",
        "subject_id",
        unique=True,
        postgresql_where=text("closed_at IS NULL AND subject_id IS NOT NULL"),
    ),
)

# Every step in the life of a request, for good.
rights_request_change = Table(
    "rights_request_change",
    metadata,
    Column("org_id", Text, nullable=False),
    Column("request_id", Uuid, nullable=False),
    Column("version", Integer, nullable=False),
    Column("at", INSTANT, nullable=False),
    Column("by", Text, nullable=False),
    Column("act", Text, nullable=False),
    Column("changed", JSONB, nullable=False),
    PrimaryKeyConstraint("org_id", "request_id", "version", name="rights_request_change_pkey"),
    ForeignKeyConstraint(
        ["org_id", "request_id"], ["rights_request.org_id", "rights_request.request_id"], name="change_of_a_request"
    ),
    CheckConstraint(f"{is_identifier('by')} AND act ~ '^[a-z -]{{1,40}}$'", name="change_names_officer_and_act"),
    CheckConstraint("jsonb_typeof(changed) = 'object'", name="change_is_by_field"),
)

# A restriction, a hold or a suppression: about a subject with all that comes, or about one memory.
measure = Table(
    "measure",
    metadata,
    Column("org_id", Text, nullable=False),
    Column("measure_id", Uuid, nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("subject_type", Text),
    Column("subject_id", Text),
    Column("memory_id", Uuid),
    Column("by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("placed_at", INSTANT, nullable=False),
    Column("review_on", Date),
    Column("request_id", Uuid),
    Column("lifted_at", INSTANT),
    Column("lifted_by", Text),
    Column("lifted_reason", Text),
    Column("person_told", Boolean),
    PrimaryKeyConstraint("org_id", "measure_id", name="measure_pkey"),
    ForeignKeyConstraint(["org_id"], ["organisation.org_id"], name="measure_of_an_organisation"),
    ForeignKeyConstraint(
        ["org_id", "request_id"], ["rights_request.org_id", "rights_request.request_id"], name="measure_for_a_request"
    ),
    CheckConstraint("kind IN ('hold', 'restriction', 'suppression')", name="kind_of_measure_is_known"),
    CheckConstraint(
        "(subject_type IS NULL) = (subject_id IS NULL) AND (subject_id IS NOT NULL OR memory_id IS NOT NULL)",
        name="measure_is_about_a_subject_or_a_memory",
    ),
    CheckConstraint("kind <> 'suppression' OR (memory_id IS NULL)", name="suppression_is_about_a_subject"),
    CheckConstraint(
        " AND ".join(
            [
                is_identifier("name"),
                is_identifier("by"),
                *(
                    f"({column} IS NULL OR {is_identifier(column)})"
                    for column in ("subject_type", "subject_id", "lifted_by")
                ),
            ]
        ),
        name="measure_has_its_identifiers",
    ),
    CheckConstraint(
        "char_length(reason) BETWEEN 1 AND 500 AND (lifted_reason IS NULL OR char_length(lifted_reason) BETWEEN 1 AND 500)",
        name="measure_reason_length",
    ),
    CheckConstraint(
        "(lifted_at IS NULL) = (lifted_by IS NULL) AND (lifted_at IS NULL) = (lifted_reason IS NULL)",
        name="lifting_says_when_who_why",
    ),
    CheckConstraint(
        "person_told IS NULL OR (kind = 'restriction' AND lifted_at IS NOT NULL)",
        name="the_person_is_told_of_a_lifted_restriction",
    ),
    Index("measure_by_subject", "org_id", "subject_type", "subject_id"),
    Index(
        "one_standing_measure_of_a_kind",
        "org_id",
        "kind",
        "subject_type",
        "subject_id",
        "memory_id",
        unique=True,
        postgresql_nulls_not_distinct=True,
        postgresql_where=text("lifted_at IS NULL AND kind <> 'hold'"),
    ),
    Index(
        "one_standing_hold_of_a_name",
        "org_id",
        "name",
        "subject_type",
        "subject_id",
        "memory_id",
        unique=True,
        postgresql_nulls_not_distinct=True,
        postgresql_where=text("lifted_at IS NULL AND kind = 'hold'"),
    ),
)

# What must be done again on a database that was restored from a backup; copied to a file outside. No text, ever.
ledger = Table(
    "ledger",
    metadata,
    Column("org_id", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("entry_id", Uuid, nullable=False),
    Column("act", Text, nullable=False),
    Column("subject_type", Text),
    Column("subject_id", Text),
    Column("memory_ids", ARRAY(Uuid), nullable=False),
    Column("name", Text),  # of a measure
    Column("reference", Uuid),  # the erasure or the measure
    Column("at", INSTANT, nullable=False),
    Column("by", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("trail_number", BigInteger, nullable=False),
    Column("trail_hash", LargeBinary, nullable=False),
    PrimaryKeyConstraint("org_id", "number", name="ledger_pkey"),
    ForeignKeyConstraint(["org_id"], ["organisation.org_id"], name="ledger_of_an_organisation"),
    CheckConstraint(
        "act IN ('correct', 'forget', 'hold', 'lift', 'replay', 'restriction', 'suppression')",
        name="ledger_act_is_known",
    ),
    CheckConstraint("code ~ '^[a-z_]{1,40}$'", name="ledger_code_is_a_word"),
    CheckConstraint(
        " AND ".join(
            [
                "number >= 1 AND trail_number >= 1 AND octet_length(trail_hash) = 32",
                "(subject_type IS NULL) = (subject_id IS NULL)",
                is_identifier("by"),
                *(
                    f"({column} IS NULL OR {is_identifier(column)})"
                    for column in ("subject_type", "subject_id", "name")
                ),
            ]
        ),
        name="ledger_holds_identifiers",
    ),
    Index("ledger_entry", "org_id", "entry_id", unique=True),
)

# Who did what, when, about whom, each line chained to the one before by its hash. No memory's text, ever.
trail = Table(
    "trail",
    metadata,
    Column("org_id", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("at", INSTANT, nullable=False),
    Column("by", Text, nullable=False),
    Column("act", Text, nullable=False),
    Column("subject_type", Text),
    Column("subject_id", Text),
    Column("reference", Text),
    Column("request", Text),  # the reference of the request for which it was done
    Column("count", BigInteger),
    Column("reason", Text),
    Column("hash", LargeBinary, nullable=False),
    PrimaryKeyConstraint("org_id", "number", name="trail_pkey"),
    ForeignKeyConstraint(["org_id"], ["organisation.org_id"], name="trail_of_an_organisation"),
    CheckConstraint("act ~ '^[a-z -]{1,40}$'", name="trail_act_is_words"),
    CheckConstraint("char_length(reason) BETWEEN 1 AND 500", name="trail_reason_length"),
    CheckConstraint(
        " AND ".join(
            [
                "number >= 1 AND octet_length(hash) = 32",
                "(subject_type IS NULL) = (subject_id IS NULL)",
                is_identifier("by"),
                *(
                    f"({column} IS NULL OR {is_identifier(column)})"
                    for column in ("subject_type", "subject_id", "reference", "request")
                ),
            ]
        ),
        name="trail_holds_identifiers",
    ),
    Index("trail_by_subject", "org_id", "subject_type", "subject_id", "number"),
    Index("trail_by_reference", "org_id", "reference"),
    Index("trail_by_request", "org_id", "request"),
)

# A run of an agent: when it was, and how it ended; never a word of what was said. A run without an end is running, or
# was killed.
agent_run = Table(
    "agent_run",
    metadata,
    Column("org_id", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("specification_digest", LargeBinary, nullable=False),
    Column("model", Text, nullable=False),
    Column("tier", Text, nullable=False),
    Column("asked_by", Text, nullable=False),
    Column("documents", ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")),
    Column("turn_limit", Integer, nullable=False),
    # With it the arguments of a tool call are kept as a fingerprint that only this database can check.
    Column("salt", LargeBinary, nullable=False, server_default=text("uuid_send(gen_random_uuid())")),
    Column("started_at", INSTANT, nullable=False),
    Column("deadline_at", INSTANT, nullable=False),
    Column("ended_at", INSTANT),
    Column("termination", Text),
    Column("detail", Text),  # our own words, never a model's
    Column("turns", Integer),
    Column("answer_was_cut", Boolean),
    Column(
        "observations_left_out", Boolean, nullable=False, server_default=text("false")
    ),  # of what a model outside saw
    PrimaryKeyConstraint("org_id", "run_id", name="agent_run_pkey"),
    ForeignKeyConstraint(["org_id"], ["organisation.org_id"], name="agent_run_of_an_organisation"),
    CheckConstraint(
        " AND ".join(is_identifier(column) for column in ("run_id", "agent", "model", "asked_by")),
        name="run_has_its_identifiers",
    ),
    CheckConstraint("tier IN ('balanced', 'deep', 'fast')", name="tier_of_a_run_is_known"),
    CheckConstraint(f"termination ~ '^({TERMINATIONS})$'", name="termination_is_known"),
    CheckConstraint(
        "(ended_at IS NULL) = (termination IS NULL) AND (ended_at IS NULL) = (turns IS NULL)"
        " AND (ended_at IS NULL) = (answer_was_cut IS NULL) AND (detail IS NULL OR ended_at IS NOT NULL)",
        name="ended_run_says_how",
    ),
    CheckConstraint("ended_at >= started_at AND deadline_at > started_at", name="run_ends_after_it_starts"),
    CheckConstraint("turns >= 0 AND turn_limit >= 1", name="run_counts_from_zero"),
    CheckConstraint("detail ~ '^[A-Za-z0-9_,;:.'' -]{1,200}$'", name="detail_is_plain"),
    CheckConstraint(
        "octet_length(specification_digest) = 32 AND octet_length(salt) = 16", name="run_digest_and_salt_length"
    ),
    CheckConstraint(
        f"cardinality(documents) <= 100 AND {are_identifiers('documents')}", name="documents_are_identifiers"
    ),
    Index("agent_run_by_time", "org_id", "started_at"),
)

# A tool call of a run. Its arguments may name persons, and so are kept as a digest only.
agent_call = Table(
    "agent_call",
    metadata,
    Column("org_id", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("turn", Integer, nullable=False),
    Column("tool", Text),  # None: no such tool was offered
    Column("arguments_digest", LargeBinary, nullable=False),
    Column("outcome", Text, nullable=False),
    # What it wrote and what it read. No foreign keys, since a tombstone is purged before the record of its run.
    Column("memory_id", Uuid),
    Column("recall_id", Uuid),
    Column("ended_at", INSTANT, nullable=False),
    Column("took_ms", REAL, nullable=False),
    PrimaryKeyConstraint("org_id", "run_id", "number", name="agent_call_pkey"),
    ForeignKeyConstraint(["org_id", "run_id"], ["agent_run.org_id", "agent_run.run_id"], name="call_of_a_run"),
    CheckConstraint(is_identifier("tool"), name="tool_is_an_identifier"),
    CheckConstraint("octet_length(arguments_digest) = 32", name="arguments_digest_length"),
    CheckConstraint(
        "outcome IN ('done', 'failed', 'invalid arguments', 'invented', 'malformed', 'not carried out', 'not found',"
        " 'refused', 'too slow')",
        name="outcome_is_known",
    ),
    CheckConstraint("(outcome = 'invented') = (tool IS NULL)", name="only_an_invented_tool_has_no_name"),
    CheckConstraint("number >= 1 AND turn >= 1", name="tool_call_counts_from_one"),
    CheckConstraint("took_ms >= 0 AND took_ms < 'Infinity'", name="tool_call_time_counts_from_zero"),
)

# The suites tried once, with one model asked in one way. One without an end is running, or was interrupted.
evaluation = Table(
    "evaluation",
    metadata,
    Column("org_id", Text, nullable=False),
    Column("evaluation_id", Uuid, nullable=False),
    Column("model", Text, nullable=False),
    Column("digest", Text),
    Column("provider", Text, nullable=False),
    Column("settings", JSONB, nullable=False),
    Column("suites_hash", Text, nullable=False),
    Column("agents", ARRAY(Text), nullable=False),
    Column("cases", Integer, nullable=False),
    Column("trials", Integer, nullable=False),
    Column("base_seed", BigInteger, nullable=False),
    Column("by", Text, nullable=False),
    Column("started_at", INSTANT, nullable=False),
    Column("ended_at", INSTANT),
    PrimaryKeyConstraint("org_id", "evaluation_id", name="evaluation_pkey"),
    ForeignKeyConstraint(["org_id"], ["organisation.org_id"], name="evaluation_of_an_organisation"),
    CheckConstraint(
        f"{is_identifier('model')} AND (digest IS NULL OR {is_identifier('digest')}) AND {is_identifier('by')}",
        name="evaluation_has_its_identifiers",
    ),
    CheckConstraint("provider IN ('ollama', 'openai', 'scripted')", name="provider_of_an_evaluation_is_known"),
    CheckConstraint("jsonb_typeof(settings) = 'object'", name="settings_are_by_name"),
    CheckConstraint("suites_hash ~ '^[0-9a-f]{64}$'", name="suites_hash_is_a_digest"),
    CheckConstraint(
        f"cardinality(agents) BETWEEN 1 AND 50 AND {are_identifiers('agents')}", name="agents_are_identifiers"
    ),
    CheckConstraint("cases >= 1 AND trials BETWEEN 1 AND 1000", name="evaluation_counts_from_one"),
    CheckConstraint("ended_at >= started_at", name="evaluation_ends_after_it_starts"),
    Index("evaluation_by_time", "org_id", "started_at"),
)

# One trial of one case, with what was said in it: of invented people, about whom nobody asks.
evaluation_result = Table(
    "evaluation_result",
    metadata,
    Column("org_id", Text, nullable=False),
    Column("evaluation_id", Uuid, nullable=False),
    Column("agent", Text, nullable=False),
    Column("case_id", Text, nullable=False),
    Column("trial", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("termination", Text, nullable=False),  # none: there was no run at all
    Column("infrastructure", Text),
    Column("aspects", JSONB, nullable=False),
    Column("passed", Boolean),
    Column("turns", Integer, nullable=False),
    Column("tool_calls", Integer, nullable=False),
    Column("took_ms", REAL, nullable=False),
    Column("transcript", JSONB, nullable=False),
    Column("at", INSTANT, nullable=False),
    PrimaryKeyConstraint("org_id", "evaluation_id", "agent", "case_id", "trial", name="evaluation_result_pkey"),
    ForeignKeyConstraint(
        ["org_id", "evaluation_id"], ["evaluation.org_id", "evaluation.evaluation_id"], name="result_of_an_evaluation"
    ),
    CheckConstraint(f"{is_identifier('agent')} AND {is_identifier('case_id')}", name="result_names_agent_and_case"),
    CheckConstraint("kind ~ '^[a-z ]{1,40}$'", name="kind_of_case_is_words"),
    CheckConstraint(f"termination ~ '^(none|{TERMINATIONS})$'", name="termination_of_a_result_is_known"),
    CheckConstraint("infrastructure ~ '^[A-Za-z0-9._ -]{1,80}$'", name="infrastructure_is_plain"),
    CheckConstraint("jsonb_typeof(aspects) = 'object'", name="aspects_are_by_name"),
    CheckConstraint("(passed IS NULL) = (infrastructure IS NOT NULL)", name="unjudged_says_why"),
    CheckConstraint("trial >= 1 AND turns >= 0 AND tool_calls >= 0", name="result_counts_from_zero"),
    CheckConstraint("took_ms >= 0 AND took_ms < 'Infinity'", name="result_time_counts_from_zero"),
    CheckConstraint("jsonb_typeof(transcript) = 'array'", name="transcript_is_a_list"),
)

# One role of one identity. Who it is, is what a provider says: the name is what the trail calls them, the e-mail address is
# for people to recognise. What was removed stays, so that the trail's names can be read for good.
member = Table(
    "member",
    metadata,
    Column("org_id", Text, nullable=False),
    Column("member_id", Uuid, nullable=False),
    Column("issuer", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("identity", LargeBinary, nullable=False),  # what issuer and subject are looked up by
    Column("role", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("email", Text),
    Column("added_at", INSTANT, nullable=False),
    Column("added_by", Text, nullable=False),
    Column("removed_at", INSTANT),
    Column("removed_by", Text),
    PrimaryKeyConstraint("org_id", "member_id", name="member_pkey"),
    ForeignKeyConstraint(["org_id"], ["organisation.org_id"], name="member_of_an_organisation"),
    CheckConstraint(
        "char_length(issuer) BETWEEN 1 AND 255 AND char_length(subject) BETWEEN 1 AND 255",
        name="issuer_and_subject_length",
    ),
    CheckConstraint(
        "identity = sha256(int4send(octet_length(issuer)) || convert_to(issuer, 'UTF8')"
        " || int4send(octet_length(subject)) || convert_to(subject, 'UTF8'))",
        name="identity_is_of_issuer_and_subject",
    ),
    CheckConstraint("role IN ('admin', 'auditor', 'dpo', 'engineer')", name="role_is_known"),
    CheckConstraint(f"name ~ '^user:.' AND {is_identifier('name')}", name="name_is_a_users"),
    CheckConstraint("char_length(email) BETWEEN 3 AND 254", name="email_length"),
    CheckConstraint(
        f"{is_identifier('added_by')} AND (removed_by IS NULL OR {is_identifier('removed_by')})",
        name="member_names_who_added_and_removed",
    ),
    CheckConstraint("(removed_at IS NULL) = (removed_by IS NULL)", name="removal_says_when_and_by_whom"),
    Index(
        "one_standing_role_of_an_identity",
        "org_id",
        "identity",
        "role",
        unique=True,
        postgresql_where=text("removed_at IS NULL"),
    ),
    # Across organisations: where somebody who signs in is a member.
    Index("member_by_identity", "identity", postgresql_where=text("removed_at IS NULL")),
)

# That a second officer was asked to agree to exactly one act, what was said, and that it was done.
approval = Table(
    "approval",
    metadata,
    Column("org_id", Text, nullable=False),
    Column("approval_id", Uuid, nullable=False),
    Column("act", Text, nullable=False),
    Column("fingerprint", LargeBinary, nullable=False),  # of exactly what is to be done
    Column("subject_type", Text),
    Column("subject_id", Text),
    Column("count", BigInteger),  # of the memories it is about
    Column("reason", Text, nullable=False),
    Column("asked_by", Text, nullable=False),
    Column("asked_at", INSTANT, nullable=False),
    Column("expires_at", INSTANT, nullable=False),
    Column("decided_by", Text),
    Column("decided_at", INSTANT),
    Column("agreed", Boolean),
    Column("used_at", INSTANT),
    PrimaryKeyConstraint("org_id", "approval_id", name="approval_pkey"),
    ForeignKeyConstraint(["org_id"], ["organisation.org_id"], name="approval_of_an_organisation"),
    CheckConstraint(
        "act IN ('correct', 'erase', 'hand out a package', 'lift a hold')", name="act_to_agree_to_is_known"
    ),
    CheckConstraint("octet_length(fingerprint) = 32", name="fingerprint_length"),
    CheckConstraint("(subject_type IS NULL) = (subject_id IS NULL)", name="approval_names_type_and_id_or_neither"),
    CheckConstraint(
        " AND ".join(
            [
                is_identifier("asked_by"),
                *(
                    f"({column} IS NULL OR {is_identifier(column)})"
                    for column in ("subject_type", "subject_id", "decided_by")
                ),
            ]
        ),
        name="approval_has_its_identifiers",
    ),
    CheckConstraint("count >= 0", name="approval_counts_from_zero"),
    CheckConstraint("char_length(reason) BETWEEN 1 AND 500", name="approval_reason_length"),
    CheckConstraint("expires_at > asked_at", name="approval_expires_after_it_is_asked_for"),
    CheckConstraint(
        "(decided_at IS NULL) = (decided_by IS NULL) AND (decided_at IS NULL) = (agreed IS NULL)",
        name="decision_says_when_who_what",
    ),
    CheckConstraint("decided_by <> asked_by", name="somebody_else_decides"),
    CheckConstraint("used_at IS NULL OR coalesce(agreed, false)", name="only_what_is_agreed_to_is_used"),
    Index("approval_by_fingerprint", "org_id", "act", "fingerprint"),
    Index("approval_open", "org_id", "asked_at", postgresql_where=text("decided_at IS NULL")),
)

# Every table whose rows belong to one organisation, and so is under forced row level security.
TENANT_TABLES = (
    organisation_setting,
    memory,
    directory,
    recall,
    disclosure,
    erasure,
    model_call,
    rights_request,
    rights_request_change,
    measure,
    ledger,
    trail,
    agent_run,
    agent_call,
    evaluation,
    evaluation_result,
    member,
    approval,
)
