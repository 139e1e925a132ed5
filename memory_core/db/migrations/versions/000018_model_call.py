"""The record of every call to a chat model: where its time went, and what it counts under the ceiling of tokens a minute.

Why: a small model on a CPU is slow in ways that only figures tell apart (waiting, loading, reading the prompt, writing),
and a hosted one is paid and limited by the token. The record is kept for calls that failed first of all, and holds no
word of what was said. The ceiling is counted here because all processes of an organisation share it.

Revision ID: 000018
"""

from alembic import context, op

revision = "000018"
down_revision = "000017"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE model_call (
    org_id TEXT NOT NULL,
    call_id UUID NOT NULL,
    run_id TEXT NOT NULL,
    tier TEXT NOT NULL,
    model TEXT NOT NULL,
    digest TEXT,
    provider TEXT NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE NOT NULL,
    deadline_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE,
    estimated_tokens INTEGER NOT NULL,
    memory_tokens INTEGER NOT NULL,
    counted_tokens INTEGER NOT NULL,
    counts_until TIMESTAMP WITH TIME ZONE NOT NULL,
    queue_ms REAL,
    load_ms REAL,
    prompt_ms REAL,
    generation_ms REAL,
    first_chunk_ms REAL,
    first_answer_ms REAL,
    total_ms REAL,
    prompt_tokens INTEGER,
    output_tokens INTEGER,
    cached BOOLEAN,
    cold BOOLEAN,
    finish_reason TEXT,
    error_code TEXT,
    attempts INTEGER,
    tool_calls INTEGER,
    tool_calls_in_text INTEGER,
    tool_call_faults INTEGER,
    prompt_was_cut BOOLEAN,
    CONSTRAINT model_call_pkey PRIMARY KEY (org_id, call_id),
    CONSTRAINT model_call_of_an_organisation FOREIGN KEY(org_id) REFERENCES organisation (org_id),
    CONSTRAINT model_call_names_run_and_model CHECK (run_id ~ '^[A-Za-z0-9._:@/+-]{1,128}$' AND model ~ '^[A-Za-z0-9._:@/+-]{1,128}$' AND (digest IS NULL OR digest ~ '^[A-Za-z0-9._:@/+-]{1,128}$')),
    CONSTRAINT tier_is_known CHECK (tier IN ('balanced', 'deep', 'fast')),
    CONSTRAINT provider_is_known CHECK (provider IN ('ollama', 'openai')),
    CONSTRAINT finish_reason_is_known CHECK (finish_reason IN ('content_filter', 'length', 'other', 'stop', 'tool_calls')),
    CONSTRAINT error_code_is_the_gateways CHECK (error_code ~ '^gateway[.][a-z_]{1,40}$'),
    CONSTRAINT ended_call_was_answered_or_failed CHECK ((ended_at IS NULL OR (total_ms IS NOT NULL AND attempts IS NOT NULL)) AND (ended_at IS NULL) = (finish_reason IS NULL AND error_code IS NULL) AND (finish_reason IS NULL OR error_code IS NULL)),
    CONSTRAINT call_ends_after_it_starts CHECK (ended_at >= started_at AND deadline_at > started_at AND counts_until >= started_at),
    CONSTRAINT call_counts_from_zero CHECK (estimated_tokens >= 0 AND memory_tokens >= 0 AND counted_tokens >= 0 AND prompt_tokens >= 0 AND output_tokens >= 0 AND attempts >= 0 AND tool_calls >= 0 AND tool_calls_in_text >= 0 AND tool_call_faults >= 0),
    CONSTRAINT call_times_count_from_zero CHECK (least(queue_ms, load_ms, prompt_ms, generation_ms, first_chunk_ms, first_answer_ms, total_ms) >= 0 AND greatest(queue_ms, load_ms, prompt_ms, generation_ms, first_chunk_ms, first_answer_ms, total_ms) < 'Infinity')
);

CREATE INDEX model_call_by_run ON model_call (org_id, run_id);

CREATE INDEX model_call_by_time ON model_call (org_id, started_at);

CREATE INDEX model_call_counted ON model_call (org_id, counts_until);
"""

ROW_SECURITY = """
ALTER TABLE model_call ENABLE ROW LEVEL SECURITY;
ALTER TABLE model_call FORCE ROW LEVEL SECURITY;
CREATE POLICY one_organisation ON model_call
    USING (org_id = nullif(current_setting('memory.org_id', true), ''))
    WITH CHECK (org_id = nullif(current_setting('memory.org_id', true), ''));
"""

# Who called which model, when and for which run is written once; what became of it is added when it ends.
GRANTS = """
GRANT SELECT, INSERT, UPDATE (digest, ended_at, counted_tokens, counts_until, queue_ms, load_ms, prompt_ms, generation_ms,
    first_chunk_ms, first_answer_ms, total_ms, prompt_tokens, output_tokens, cached, cold, finish_reason, error_code,
    attempts, tool_calls, tool_calls_in_text, tool_call_faults, prompt_was_cut)
    ON model_call TO {role};
"""


def upgrade() -> None:
    for script in (TABLE, ROW_SECURITY, GRANTS.format(role=context.config.attributes["quoted_role"])):
        for statement in script.split(";\n"):
            if statement.strip():
                op.execute(statement.strip().replace(":", "\\:"))  # a colon in a name is no parameter


def downgrade() -> None:
    op.drop_table("model_call")
