-- The first schema. One text for SQLite and PostgreSQL; a line that ends in
-- "--sqlite" or "--postgres" is for that database alone. Times are microseconds
-- since 1970 (UTC); an empty reference is NULL.

CREATE TABLE counters (
    name  TEXT PRIMARY KEY,
    value BIGINT NOT NULL
);
INSERT INTO counters (name, value) VALUES ('events', 0), ('tasks', 0);

CREATE TABLE settings (
    key        TEXT PRIMARY KEY,
    value      TEXT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE users (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    email      TEXT,
    admin      BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX users_email ON users (email) WHERE email IS NOT NULL;

CREATE TABLE squads (
    id          TEXT PRIMARY KEY,
    org_id      TEXT,
    user_id     TEXT REFERENCES users (id) ON DELETE SET NULL DEFERRABLE,
    name        TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    description TEXT NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('active', 'paused', 'archived')),
    config      JSONB NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);
CREATE INDEX squads_user ON squads (user_id);

CREATE TABLE squad_users (
    squad_id TEXT NOT NULL REFERENCES squads (id) ON DELETE CASCADE DEFERRABLE,
    user_id  TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE DEFERRABLE,
    role     TEXT NOT NULL CHECK (role IN ('admin', 'member', 'viewer')),
    PRIMARY KEY (squad_id, user_id)
);
CREATE INDEX squad_users_user ON squad_users (user_id);

CREATE TABLE credentials (
    id         TEXT PRIMARY KEY,
    squad_id   TEXT REFERENCES squads (id) ON DELETE CASCADE DEFERRABLE,
    name       TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    kind       TEXT NOT NULL CHECK (kind IN ('token', 'github_app', 'model_key', 'e2b_key', 'webhook', 'sign_key')),
    provider   TEXT NOT NULL,
    hint       TEXT NOT NULL,
    sealed     BYTEA,
    created_at BIGINT NOT NULL,
    rotated_at BIGINT
);
CREATE INDEX credentials_squad ON credentials (squad_id);

CREATE TABLE repositories (
    id             TEXT PRIMARY KEY,
    squad_id       TEXT NOT NULL REFERENCES squads (id) ON DELETE CASCADE DEFERRABLE,
    name           TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    forge          TEXT NOT NULL CHECK (forge IN ('local', 'github', 'gitea')),
    url            TEXT NOT NULL,
    api_url        TEXT NOT NULL,
    default_branch TEXT NOT NULL,
    credential_id  TEXT REFERENCES credentials (id) ON DELETE SET NULL DEFERRABLE,
    pr_template    TEXT NOT NULL,
    reviewers      JSONB NOT NULL,
    policy         JSONB NOT NULL,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL,
    UNIQUE (squad_id, name)
);
CREATE INDEX repositories_credential ON repositories (credential_id);

CREATE TABLE squad_members (
    id              TEXT PRIMARY KEY,
    squad_id        TEXT NOT NULL REFERENCES squads (id) ON DELETE CASCADE DEFERRABLE,
    name            TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    role            TEXT NOT NULL CHECK (length(role) BETWEEN 1 AND 60),
    specialization  TEXT NOT NULL,
    llm_provider    TEXT NOT NULL,
    llm_model       TEXT NOT NULL,
    system_prompt   TEXT NOT NULL,
    config          JSONB NOT NULL,
    is_active       BOOLEAN NOT NULL,
    sandbox_id      TEXT REFERENCES sandboxes (id) ON DELETE SET NULL DEFERRABLE, --sqlite
    current_task_id TEXT REFERENCES tasks (id) ON DELETE SET NULL DEFERRABLE, --sqlite
    sandbox_id      TEXT, --postgres
    current_task_id TEXT, --postgres
    git_context     JSONB NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    UNIQUE (squad_id, name)
);
CREATE INDEX squad_members_sandbox ON squad_members (sandbox_id);
CREATE INDEX squad_members_task ON squad_members (current_task_id);

CREATE TABLE tasks (
    id               TEXT PRIMARY KEY,
    number           BIGINT NOT NULL UNIQUE CHECK (number > 0),
    squad_id         TEXT NOT NULL REFERENCES squads (id) ON DELETE CASCADE DEFERRABLE,
    repository_id    TEXT REFERENCES repositories (id) ON DELETE SET NULL DEFERRABLE,
    title            TEXT NOT NULL CHECK (length(title) BETWEEN 1 AND 300),
    description      TEXT NOT NULL,
    status           TEXT NOT NULL CHECK (status IN ('backlog', 'todo', 'in_progress', 'in_review', 'done')),
    flag             TEXT NOT NULL CHECK (flag IN ('', 'blocked', 'failed', 'cancelled')),
    cause            TEXT NOT NULL,
    priority         INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 3),
    labels           JSONB NOT NULL,
    assignee_id      TEXT REFERENCES squad_members (id) ON DELETE SET NULL DEFERRABLE,
    depends_on       JSONB NOT NULL,
    base_branch      TEXT NOT NULL,
    git_branch       TEXT NOT NULL,
    pull_request_url TEXT NOT NULL,
    budget           JSONB NOT NULL,
    execution_id     TEXT REFERENCES task_executions (id) ON DELETE SET NULL DEFERRABLE, --sqlite
    execution_id     TEXT, --postgres
    cost_usd         DOUBLE PRECISION NOT NULL CHECK (cost_usd >= 0),
    position         DOUBLE PRECISION NOT NULL,
    created_by       TEXT NOT NULL,
    version          BIGINT NOT NULL CHECK (version > 0),
    created_at       BIGINT NOT NULL,
    updated_at       BIGINT NOT NULL
);
CREATE INDEX tasks_board ON tasks (squad_id, status, position);
CREATE INDEX tasks_status ON tasks (status);
CREATE INDEX tasks_repository ON tasks (repository_id);
CREATE INDEX tasks_assignee ON tasks (assignee_id);
CREATE INDEX tasks_execution ON tasks (execution_id);

-- What tasks.depends_on says, with the database's word that each exists.
CREATE TABLE task_dependencies (
    task_id       TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE DEFERRABLE,
    depends_on_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE DEFERRABLE,
    PRIMARY KEY (task_id, depends_on_id),
    CHECK (task_id <> depends_on_id)
);
CREATE INDEX task_dependencies_reverse ON task_dependencies (depends_on_id);

CREATE TABLE sandboxes (
    id            TEXT PRIMARY KEY,
    provider      TEXT NOT NULL CHECK (provider <> ''),
    e2b_id        TEXT,
    squad_id      TEXT REFERENCES squads (id) ON DELETE SET NULL DEFERRABLE,
    agent_id      TEXT REFERENCES squad_members (id) ON DELETE SET NULL DEFERRABLE,
    task_id       TEXT REFERENCES tasks (id) ON DELETE SET NULL DEFERRABLE,
    execution_id  TEXT REFERENCES task_executions (id) ON DELETE SET NULL DEFERRABLE, --sqlite
    execution_id  TEXT, --postgres
    repo_url      TEXT NOT NULL,
    template      TEXT NOT NULL,
    status        TEXT NOT NULL CHECK (status IN ('created', 'running', 'paused', 'terminated', 'error')),
    error         TEXT NOT NULL,
    pooled        BOOLEAN NOT NULL,
    node          TEXT NOT NULL,
    cpu           DOUBLE PRECISION NOT NULL,
    memory_mb     BIGINT NOT NULL,
    epoch         BIGINT NOT NULL,
    command_count BIGINT NOT NULL,
    create_ms     BIGINT NOT NULL,
    cost_usd      DOUBLE PRECISION NOT NULL CHECK (cost_usd >= 0),
    created_at    BIGINT NOT NULL,
    last_used_at  BIGINT NOT NULL,
    expires_at    BIGINT,
    terminated_at BIGINT,
    CHECK (status <> 'terminated' OR terminated_at IS NOT NULL)
);
CREATE INDEX sandboxes_task ON sandboxes (task_id);
CREATE INDEX sandboxes_status ON sandboxes (status);
CREATE UNIQUE INDEX sandboxes_e2b ON sandboxes (e2b_id, provider) WHERE e2b_id IS NOT NULL;
CREATE INDEX sandboxes_agent ON sandboxes (agent_id);
CREATE INDEX sandboxes_squad ON sandboxes (squad_id);
CREATE INDEX sandboxes_execution ON sandboxes (execution_id);

CREATE TABLE task_executions (
    id               TEXT PRIMARY KEY,
    task_id          TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE DEFERRABLE,
    squad_id         TEXT NOT NULL REFERENCES squads (id) ON DELETE CASCADE DEFERRABLE,
    member_id        TEXT REFERENCES squad_members (id) ON DELETE SET NULL DEFERRABLE,
    sandbox_id       TEXT REFERENCES sandboxes (id) ON DELETE SET NULL DEFERRABLE,
    status           TEXT NOT NULL CHECK (status IN ('queued', 'running', 'waiting', 'succeeded', 'failed', 'cancelled')),
    step             TEXT NOT NULL,
    percent          INTEGER NOT NULL CHECK (percent BETWEEN 0 AND 100),
    liveness         JSONB NOT NULL,
    attempt          INTEGER NOT NULL CHECK (attempt > 0),
    lane             INTEGER NOT NULL DEFAULT 0 CHECK (lane >= 0),
    turn             INTEGER NOT NULL CHECK (turn >= 0),
    git_branch       TEXT NOT NULL,
    base_sha         TEXT NOT NULL,
    head_sha         TEXT NOT NULL,
    pull_request_url TEXT NOT NULL,
    commit_history   JSONB NOT NULL,
    error            TEXT NOT NULL,
    error_code       TEXT NOT NULL,
    tokens_in        BIGINT NOT NULL,
    tokens_out       BIGINT NOT NULL,
    tokens_cached    BIGINT NOT NULL,
    model_cost_usd   DOUBLE PRECISION NOT NULL,
    sandbox_cost_usd DOUBLE PRECISION NOT NULL,
    created_at       BIGINT NOT NULL,
    started_at       BIGINT,
    finished_at      BIGINT,
    CHECK ((status IN ('succeeded', 'failed', 'cancelled')) = (finished_at IS NOT NULL))
);
CREATE INDEX task_executions_task ON task_executions (task_id);
CREATE UNIQUE INDEX task_executions_live ON task_executions (task_id, lane) WHERE finished_at IS NULL;
CREATE INDEX task_executions_status ON task_executions (status);
CREATE INDEX task_executions_squad ON task_executions (squad_id);
CREATE INDEX task_executions_member ON task_executions (member_id);
CREATE INDEX task_executions_sandbox ON task_executions (sandbox_id);

ALTER TABLE squad_members ADD FOREIGN KEY (sandbox_id) REFERENCES sandboxes (id) ON DELETE SET NULL DEFERRABLE; --postgres
ALTER TABLE squad_members ADD FOREIGN KEY (current_task_id) REFERENCES tasks (id) ON DELETE SET NULL DEFERRABLE; --postgres
ALTER TABLE tasks ADD FOREIGN KEY (execution_id) REFERENCES task_executions (id) ON DELETE SET NULL DEFERRABLE; --postgres
ALTER TABLE sandboxes ADD FOREIGN KEY (execution_id) REFERENCES task_executions (id) ON DELETE SET NULL DEFERRABLE; --postgres

CREATE TABLE api_tokens (
    id           TEXT PRIMARY KEY,
    user_id      TEXT REFERENCES users (id) ON DELETE CASCADE DEFERRABLE,
    kind         TEXT NOT NULL CHECK (kind IN ('user', 'agent', 'e2b', 'session', 'sign_in')),
    name         TEXT NOT NULL,
    scopes       JSONB NOT NULL,
    member_id    TEXT REFERENCES squad_members (id) ON DELETE CASCADE DEFERRABLE,
    task_id      TEXT REFERENCES tasks (id) ON DELETE CASCADE DEFERRABLE,
    sandbox_id   TEXT REFERENCES sandboxes (id) ON DELETE CASCADE DEFERRABLE,
    prefix       TEXT NOT NULL,
    hash         TEXT NOT NULL UNIQUE CHECK (length(hash) = 64),
    expires_at   BIGINT,
    last_used_at BIGINT,
    created_at   BIGINT NOT NULL
);
CREATE INDEX api_tokens_user ON api_tokens (user_id);
CREATE INDEX api_tokens_member ON api_tokens (member_id);
CREATE INDEX api_tokens_task ON api_tokens (task_id);
CREATE INDEX api_tokens_sandbox ON api_tokens (sandbox_id);

CREATE TABLE git_operations (
    id           TEXT PRIMARY KEY,
    sandbox_id   TEXT REFERENCES sandboxes (id) ON DELETE CASCADE DEFERRABLE,
    execution_id TEXT REFERENCES task_executions (id) ON DELETE CASCADE DEFERRABLE,
    kind         TEXT NOT NULL CHECK (kind <> ''),
    status       TEXT NOT NULL CHECK (status IN ('running', 'succeeded', 'failed')),
    attempts     INTEGER NOT NULL,
    duration_ms  BIGINT NOT NULL,
    exit_code    INTEGER NOT NULL,
    output_tail  TEXT NOT NULL,
    created_at   BIGINT NOT NULL
);
CREATE INDEX git_operations_sandbox ON git_operations (sandbox_id);
CREATE INDEX git_operations_execution ON git_operations (execution_id);

CREATE TABLE messages (
    id           TEXT PRIMARY KEY,
    squad_id     TEXT NOT NULL REFERENCES squads (id) ON DELETE CASCADE DEFERRABLE,
    task_id      TEXT REFERENCES tasks (id) ON DELETE SET NULL DEFERRABLE,
    execution_id TEXT REFERENCES task_executions (id) ON DELETE SET NULL DEFERRABLE,
    sender       TEXT NOT NULL CHECK (sender <> ''),
    recipient    TEXT NOT NULL CHECK (recipient <> ''),
    kind         TEXT NOT NULL CHECK (kind <> ''),
    body         TEXT NOT NULL CHECK (length(body) BETWEEN 1 AND 65536),
    read_at      BIGINT,
    created_at   BIGINT NOT NULL
);
CREATE INDEX messages_squad ON messages (squad_id);
CREATE INDEX messages_task ON messages (task_id);
CREATE INDEX messages_execution ON messages (execution_id);
CREATE INDEX messages_unread ON messages (recipient) WHERE read_at IS NULL;

CREATE TABLE pull_requests (
    id            TEXT PRIMARY KEY,
    repository_id TEXT NOT NULL REFERENCES repositories (id) ON DELETE CASCADE DEFERRABLE,
    task_id       TEXT REFERENCES tasks (id) ON DELETE SET NULL DEFERRABLE,
    number        BIGINT NOT NULL CHECK (number > 0),
    url           TEXT NOT NULL,
    title         TEXT NOT NULL,
    body          TEXT NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('open', 'merged', 'closed')),
    draft         BOOLEAN NOT NULL,
    head          TEXT NOT NULL CHECK (head <> ''),
    base          TEXT NOT NULL CHECK (base <> ''),
    head_sha      TEXT NOT NULL,
    merge_sha     TEXT NOT NULL,
    mergeable     TEXT NOT NULL CHECK (mergeable IN ('unknown', 'clean', 'conflict', 'blocked')),
    checks        TEXT NOT NULL CHECK (checks IN ('none', 'pending', 'success', 'failure')),
    review        TEXT NOT NULL CHECK (review IN ('none', 'pending', 'approved', 'changes_requested')),
    author        TEXT NOT NULL,
    labels        JSONB NOT NULL,
    reviewers     JSONB NOT NULL,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    merged_at     BIGINT,
    UNIQUE (repository_id, number)
);
CREATE UNIQUE INDEX pull_requests_open ON pull_requests (repository_id, head) WHERE state = 'open';
CREATE INDEX pull_requests_task ON pull_requests (task_id);

CREATE TABLE review_comments (
    id         TEXT PRIMARY KEY,
    pull_id    TEXT NOT NULL REFERENCES pull_requests (id) ON DELETE CASCADE DEFERRABLE,
    remote_id  TEXT,
    author     TEXT NOT NULL,
    path       TEXT NOT NULL,
    line       INTEGER NOT NULL,
    side       TEXT NOT NULL,
    verdict    TEXT NOT NULL,
    body       TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX review_comments_pull ON review_comments (pull_id);
CREATE UNIQUE INDEX review_comments_remote ON review_comments (pull_id, remote_id) WHERE remote_id IS NOT NULL;

-- Usage outlives what it was spent on: books are not rewritten by a deletion.
CREATE TABLE usage (
    id            TEXT PRIMARY KEY,
    execution_id  TEXT REFERENCES task_executions (id) ON DELETE SET NULL DEFERRABLE,
    task_id       TEXT REFERENCES tasks (id) ON DELETE SET NULL DEFERRABLE,
    member_id     TEXT REFERENCES squad_members (id) ON DELETE SET NULL DEFERRABLE,
    squad_id      TEXT REFERENCES squads (id) ON DELETE SET NULL DEFERRABLE,
    sandbox_id    TEXT REFERENCES sandboxes (id) ON DELETE SET NULL DEFERRABLE,
    provider      TEXT NOT NULL,
    model         TEXT NOT NULL,
    tokens_in     BIGINT NOT NULL CHECK (tokens_in >= 0),
    tokens_out    BIGINT NOT NULL CHECK (tokens_out >= 0),
    tokens_cached BIGINT NOT NULL CHECK (tokens_cached >= 0),
    cost_usd      DOUBLE PRECISION NOT NULL CHECK (cost_usd >= 0),
    at            BIGINT NOT NULL
);
CREATE INDEX usage_execution ON usage (execution_id);
CREATE INDEX usage_task ON usage (task_id, at);
CREATE INDEX usage_member ON usage (member_id, at);
CREATE INDEX usage_squad ON usage (squad_id, at);
CREATE INDEX usage_sandbox ON usage (sandbox_id);

CREATE TABLE templates (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 100),
    squad_id   TEXT REFERENCES squads (id) ON DELETE CASCADE DEFERRABLE,
    provider   TEXT NOT NULL,
    source     TEXT NOT NULL,
    image      TEXT NOT NULL,
    digest     TEXT NOT NULL,
    status     TEXT NOT NULL CHECK (status IN ('building', 'ready', 'error')),
    error      TEXT NOT NULL,
    cpu        DOUBLE PRECISION NOT NULL,
    memory_mb  BIGINT NOT NULL,
    disk_mb    BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX templates_squad ON templates (squad_id);

CREATE TABLE leases (
    name       TEXT PRIMARY KEY,
    owner      TEXT NOT NULL,
    fence      BIGINT NOT NULL CHECK (fence > 0),
    expires_at BIGINT NOT NULL
);

CREATE TABLE audit_log (
    id      TEXT PRIMARY KEY,
    at      BIGINT NOT NULL,
    actor   TEXT NOT NULL CHECK (actor <> ''),
    action  TEXT NOT NULL CHECK (action <> ''),
    subject TEXT NOT NULL,
    detail  TEXT,
    remote  TEXT NOT NULL
);
CREATE INDEX audit_log_subject ON audit_log (subject);
CREATE INDEX audit_log_actor ON audit_log (actor);

CREATE TABLE webhooks_seen (
    source      TEXT NOT NULL,
    delivery_id TEXT NOT NULL,
    at          BIGINT NOT NULL,
    PRIMARY KEY (source, delivery_id)
);
CREATE INDEX webhooks_seen_at ON webhooks_seen (at);

CREATE TABLE idempotency_keys (
    key        TEXT PRIMARY KEY,
    request    TEXT NOT NULL,
    answer     TEXT,
    created_at BIGINT NOT NULL
);
CREATE INDEX idempotency_keys_created ON idempotency_keys (created_at);

-- The log outlives the rows it tells about, so its keys are not references.
-- The payload is TEXT: it must come back byte for byte, and JSONB refuses the
-- escaped NUL that a program's output may hold.
CREATE TABLE events (
    seq           BIGINT PRIMARY KEY CHECK (seq > 0),
    type          TEXT NOT NULL CHECK (type <> ''),
    at            BIGINT NOT NULL,
    squad_id      TEXT,
    task_id       TEXT,
    execution_id  TEXT,
    member_id     TEXT,
    sandbox_id    TEXT,
    repository_id TEXT,
    payload       TEXT NOT NULL
);
CREATE INDEX events_squad ON events (squad_id, seq) WHERE squad_id IS NOT NULL;
CREATE INDEX events_task ON events (task_id, seq) WHERE task_id IS NOT NULL;
CREATE INDEX events_execution ON events (execution_id, seq) WHERE execution_id IS NOT NULL;
CREATE INDEX events_member ON events (member_id, seq) WHERE member_id IS NOT NULL;
CREATE INDEX events_sandbox ON events (sandbox_id, seq) WHERE sandbox_id IS NOT NULL;

-- Durable execution: a flow, its journal of finished steps, its kept signals.
CREATE TABLE flows (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL CHECK (name <> ''),
    version    INTEGER NOT NULL CHECK (version > 0),
    queue      TEXT NOT NULL CHECK (queue <> ''),
    priority   INTEGER NOT NULL,
    status     TEXT NOT NULL CHECK (status IN ('ready', 'running', 'parked', 'succeeded', 'failed', 'cancelled')),
    input      TEXT NOT NULL,
    error      TEXT NOT NULL,
    cancel     TEXT,
    owner      TEXT NOT NULL,
    fence      BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    wake_at    BIGINT,
    awaits     TEXT,
    attempt    INTEGER NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    CHECK (status <> 'parked' OR wake_at IS NOT NULL OR awaits IS NOT NULL)
);
CREATE INDEX flows_ready ON flows (queue, priority DESC, created_at) WHERE status = 'ready';
CREATE INDEX flows_running ON flows (lease_until) WHERE status = 'running';
CREATE INDEX flows_owner ON flows (owner) WHERE status = 'running';
CREATE INDEX flows_parked ON flows (wake_at) WHERE status = 'parked' AND wake_at IS NOT NULL;
CREATE INDEX flows_ended ON flows (updated_at) WHERE status IN ('succeeded', 'failed', 'cancelled');

CREATE TABLE flow_steps (
    flow_id TEXT NOT NULL REFERENCES flows (id) ON DELETE CASCADE DEFERRABLE,
    key     TEXT NOT NULL,
    kind    TEXT NOT NULL CHECK (kind IN ('do', 'sleep', 'await')),
    done    BOOLEAN NOT NULL,
    attempt INTEGER NOT NULL,
    result  TEXT,
    error   TEXT,
    wake_at BIGINT,
    fence   BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    PRIMARY KEY (flow_id, key)
);

CREATE TABLE flow_signals (
    id      TEXT PRIMARY KEY,
    flow_id TEXT NOT NULL REFERENCES flows (id) ON DELETE CASCADE DEFERRABLE,
    name    TEXT NOT NULL CHECK (name <> ''),
    payload TEXT NOT NULL,
    at      BIGINT NOT NULL
);
CREATE INDEX flow_signals_flow ON flow_signals (flow_id, name, id);

CREATE TABLE flow_schedules (
    name    TEXT PRIMARY KEY,
    next_at BIGINT NOT NULL,
    runs    BIGINT NOT NULL
);

-- Which recipes each living node can run.
CREATE TABLE flow_recipes (
    owner   TEXT NOT NULL,
    name    TEXT NOT NULL,
    version INTEGER NOT NULL,
    until   BIGINT NOT NULL,
    PRIMARY KEY (name, version, owner)
);
