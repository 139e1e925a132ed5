"""The record of agents' runs and of the suites that try them.

Why: whoever asks "why did it say that" must see what a run was shown, which tools it called and how it ended, also when its
process was killed in the middle; so a run is on record before anything is asked, and what became of it is added once. Of
what was said nothing is kept: the arguments of a tool call are a digest, salted for each run. What the suites found is kept
beside it, transcripts included, since those are about invented people only, so that an interrupted trial of many hours goes
on where it was.

Revision ID: 000021
"""

from alembic import context, op

revision = "000021"
down_revision = "000020"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE agent_run (
    org_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    specification_digest BYTEA NOT NULL,
    model TEXT NOT NULL,
    tier TEXT NOT NULL,
    asked_by TEXT NOT NULL,
    documents TEXT[] DEFAULT '{}'::text[] NOT NULL,
    turn_limit INTEGER NOT NULL,
    salt BYTEA DEFAULT uuid_send(gen_random_uuid()) NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE NOT NULL,
    deadline_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE,
    termination TEXT,
    detail TEXT,
    turns INTEGER,
    answer_was_cut BOOLEAN,
    CONSTRAINT agent_run_pkey PRIMARY KEY (org_id, run_id),
    CONSTRAINT agent_run_of_an_organisation FOREIGN KEY(org_id) REFERENCES organisation (org_id),
    CONSTRAINT run_has_its_identifiers CHECK (run_id ~ '^[A-Za-z0-9._:@/+-]{1,128}$' AND agent ~ '^[A-Za-z0-9._:@/+-]{1,128}$' AND model ~ '^[A-Za-z0-9._:@/+-]{1,128}$' AND asked_by ~ '^[A-Za-z0-9._:@/+-]{1,128}$'),
    CONSTRAINT tier_of_a_run_is_known CHECK (tier IN ('balanced', 'deep', 'fast')),
    CONSTRAINT termination_is_known CHECK (termination ~ '^(Completed|ToolFailure|Deadline|TurnLimit|Cancelled|gateway[.][a-z_]{1,40})$'),
    CONSTRAINT ended_run_says_how CHECK ((ended_at IS NULL) = (termination IS NULL) AND (ended_at IS NULL) = (turns IS NULL) AND (ended_at IS NULL) = (answer_was_cut IS NULL) AND (detail IS NULL OR ended_at IS NOT NULL)),
    CONSTRAINT run_ends_after_it_starts CHECK (ended_at >= started_at AND deadline_at > started_at),
    CONSTRAINT run_counts_from_zero CHECK (turns >= 0 AND turn_limit >= 1),
    CONSTRAINT detail_is_plain CHECK (detail ~ '^[A-Za-z0-9_,;:.'' -]{1,200}$'),
    CONSTRAINT run_digest_and_salt_length CHECK (octet_length(specification_digest) = 32 AND octet_length(salt) = 16),
    CONSTRAINT documents_are_identifiers CHECK (cardinality(documents) <= 100 AND documents = string_to_array(array_to_string(documents, ','), ',') AND array_to_string(documents, ',') ~ '^([A-Za-z0-9._:@/+-]{1,128}(,[A-Za-z0-9._:@/+-]{1,128})*)?$')
);

CREATE INDEX agent_run_by_time ON agent_run (org_id, started_at);

CREATE TABLE agent_call (
    org_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    tool TEXT,
    arguments_digest BYTEA NOT NULL,
    outcome TEXT NOT NULL,
    memory_id UUID,
    recall_id UUID,
    ended_at TIMESTAMP WITH TIME ZONE NOT NULL,
    took_ms REAL NOT NULL,
    CONSTRAINT agent_call_pkey PRIMARY KEY (org_id, run_id, number),
    CONSTRAINT call_of_a_run FOREIGN KEY(org_id, run_id) REFERENCES agent_run (org_id, run_id),
    CONSTRAINT tool_is_an_identifier CHECK (tool ~ '^[A-Za-z0-9._:@/+-]{1,128}$'),
    CONSTRAINT arguments_digest_length CHECK (octet_length(arguments_digest) = 32),
    CONSTRAINT outcome_is_known CHECK (outcome IN ('done', 'failed', 'invalid arguments', 'invented', 'malformed', 'not carried out', 'not found', 'refused', 'too slow')),
    CONSTRAINT only_an_invented_tool_has_no_name CHECK ((outcome = 'invented') = (tool IS NULL)),
    CONSTRAINT tool_call_counts_from_one CHECK (number >= 1 AND turn >= 1),
    CONSTRAINT tool_call_time_counts_from_zero CHECK (took_ms >= 0 AND took_ms < 'Infinity')
);

CREATE TABLE evaluation (
    org_id TEXT NOT NULL,
    evaluation_id UUID NOT NULL,
    model TEXT NOT NULL,
    digest TEXT,
    provider TEXT NOT NULL,
    settings JSONB NOT NULL,
    suites_hash TEXT NOT NULL,
    agents TEXT[] NOT NULL,
    cases INTEGER NOT NULL,
    trials INTEGER NOT NULL,
    base_seed BIGINT NOT NULL,
    by TEXT NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT evaluation_pkey PRIMARY KEY (org_id, evaluation_id),
    CONSTRAINT evaluation_of_an_organisation FOREIGN KEY(org_id) REFERENCES organisation (org_id),
    CONSTRAINT evaluation_has_its_identifiers CHECK (model ~ '^[A-Za-z0-9._:@/+-]{1,128}$' AND (digest IS NULL OR digest ~ '^[A-Za-z0-9._:@/+-]{1,128}$') AND by ~ '^[A-Za-z0-9._:@/+-]{1,128}$'),
    CONSTRAINT provider_of_an_evaluation_is_known CHECK (provider IN ('ollama', 'openai', 'scripted')),
    CONSTRAINT settings_are_by_name CHECK (jsonb_typeof(settings) = 'object'),
    CONSTRAINT suites_hash_is_a_digest CHECK (suites_hash ~ '^[0-9a-f]{64}$'),
    CONSTRAINT agents_are_identifiers CHECK (cardinality(agents) BETWEEN 1 AND 50 AND agents = string_to_array(array_to_string(agents, ','), ',') AND array_to_string(agents, ',') ~ '^([A-Za-z0-9._:@/+-]{1,128}(,[A-Za-z0-9._:@/+-]{1,128})*)?$'),
    CONSTRAINT evaluation_counts_from_one CHECK (cases >= 1 AND trials BETWEEN 1 AND 1000),
    CONSTRAINT evaluation_ends_after_it_starts CHECK (ended_at >= started_at)
);

CREATE INDEX evaluation_by_time ON evaluation (org_id, started_at);

CREATE TABLE evaluation_result (
    org_id TEXT NOT NULL,
    evaluation_id UUID NOT NULL,
    agent TEXT NOT NULL,
    case_id TEXT NOT NULL,
    trial INTEGER NOT NULL,
    kind TEXT NOT NULL,
    seed BIGINT NOT NULL,
    termination TEXT NOT NULL,
    infrastructure TEXT,
    aspects JSONB NOT NULL,
    passed BOOLEAN,
    turns INTEGER NOT NULL,
    tool_calls INTEGER NOT NULL,
    took_ms REAL NOT NULL,
    transcript JSONB NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT evaluation_result_pkey PRIMARY KEY (org_id, evaluation_id, agent, case_id, trial),
    CONSTRAINT result_of_an_evaluation FOREIGN KEY(org_id, evaluation_id) REFERENCES evaluation (org_id, evaluation_id),
    CONSTRAINT result_names_agent_and_case CHECK (agent ~ '^[A-Za-z0-9._:@/+-]{1,128}$' AND case_id ~ '^[A-Za-z0-9._:@/+-]{1,128}$'),
    CONSTRAINT kind_of_case_is_words CHECK (kind ~ '^[a-z ]{1,40}$'),
    CONSTRAINT termination_of_a_result_is_known CHECK (termination ~ '^(none|Completed|ToolFailure|Deadline|TurnLimit|Cancelled|gateway[.][a-z_]{1,40})$'),
    CONSTRAINT infrastructure_is_plain CHECK (infrastructure ~ '^[A-Za-z0-9._ -]{1,80}$'),
    CONSTRAINT aspects_are_by_name CHECK (jsonb_typeof(aspects) = 'object'),
    CONSTRAINT unjudged_says_why CHECK ((passed IS NULL) = (infrastructure IS NOT NULL)),
    CONSTRAINT result_counts_from_zero CHECK (trial >= 1 AND turns >= 0 AND tool_calls >= 0),
    CONSTRAINT result_time_counts_from_zero CHECK (took_ms >= 0 AND took_ms < 'Infinity'),
    CONSTRAINT transcript_is_a_list CHECK (jsonb_typeof(transcript) = 'array')
);

CREATE INDEX memory_seen_again ON memory (org_id, last_seen_run_id) WHERE last_seen_run_id <> run_id;
"""

TENANT_TABLES = ("agent_run", "agent_call", "evaluation", "evaluation_result")

ROW_SECURITY = """
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
CREATE POLICY one_organisation ON {table}
    USING (org_id = nullif(current_setting('memory.org_id', true), ''))
    WITH CHECK (org_id = nullif(current_setting('memory.org_id', true), ''));
"""

# How it ended is written once, whoever writes it.
WHAT_ENDED_STAYS_ENDED = """
CREATE POLICY an_ended_run_stays_ended ON agent_run AS RESTRICTIVE FOR UPDATE USING (ended_at IS NULL) WITH CHECK (true);
CREATE POLICY an_ended_evaluation_stays_ended ON evaluation AS RESTRICTIVE FOR UPDATE USING (ended_at IS NULL) WITH CHECK (true);
"""

# Tool calls and results are only ever added to; of a run and an evaluation, what became of it.
GRANTS = """
GRANT SELECT, INSERT ON agent_call, evaluation_result TO {role};
GRANT SELECT, INSERT, UPDATE (ended_at, termination, detail, turns, answer_was_cut) ON agent_run TO {role};
GRANT SELECT, INSERT, UPDATE (ended_at) ON evaluation TO {role};
"""

# A run's sample workspace is temporary tables, gone with its connection. Where the owner of the tables does not own the
# database the grant is only a warning, and `run` says what is missing. (Without format(): printed, its sign is doubled.)
TEMPORARY = """
DO $$ BEGIN EXECUTE 'GRANT TEMPORARY ON DATABASE ' || quote_ident(current_database()) || ' TO {role}'; END $$;
"""

DOWN = """
DROP INDEX memory_seen_again;
DROP POLICY an_ended_run_stays_ended ON agent_run;
DROP POLICY an_ended_evaluation_stays_ended ON evaluation;
DROP TABLE evaluation_result;
DROP TABLE evaluation;
DROP TABLE agent_call;
DROP TABLE agent_run;
"""


def upgrade() -> None:
    scripts = [
        TABLES,
        *(ROW_SECURITY.format(table=table) for table in TENANT_TABLES),
        WHAT_ENDED_STAYS_ENDED,
        GRANTS.format(role=context.config.attributes["quoted_role"]),
        TEMPORARY.format(role=context.config.attributes["quoted_role"].replace("'", "''")),
    ]
    for script in scripts:
        run(script)


def downgrade() -> None:
    run(DOWN)


def run(script: str) -> None:
    for statement in script.split(";\n"):
        if statement.strip():
            op.execute(statement.strip().replace(":", "\\:"))  # a colon is no parameter
