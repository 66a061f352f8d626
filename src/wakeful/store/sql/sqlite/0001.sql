-- minimum_reader: 1
-- What must not happen cannot be written. (A list of more than two is looked up in a table that SQLite makes for every
-- row; hence the pairs.) Times are microseconds since 1970 in UTC, money millionths of a dollar.

-- Whatever can be written to: every agent, and the common address of replicas.
CREATE TABLE address (
    name       TEXT PRIMARY KEY,
    -- 1 where no timer ever shows the inbox: silent messages then ring late instead of never.
    timerless  INTEGER NOT NULL DEFAULT 0 CHECK (timerless IN (0, 1))
) WITHOUT ROWID, STRICT;

CREATE TABLE fleet (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    timezone  TEXT NOT NULL,
    sessions  INTEGER NOT NULL CHECK (sessions >= 0),
    workers   INTEGER NOT NULL CHECK (workers >= 0),
    -- The names of the tasks that recur: what is declared once is missed when it is gone.
    recurrences TEXT NOT NULL DEFAULT '[]'
) STRICT;

CREATE TABLE agent (
    name         TEXT PRIMARY KEY REFERENCES address (name),
    address      TEXT NOT NULL REFERENCES address (name),
    version      INTEGER NOT NULL CHECK (version >= 1),
    declaration  TEXT NOT NULL,
    overrides    TEXT NOT NULL DEFAULT '{}',
    enabled      INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    removed_at   INTEGER
) WITHOUT ROWID, STRICT;

CREATE INDEX agent_address ON agent (address) WHERE removed_at IS NULL;

CREATE TABLE declaration (
    agent        TEXT NOT NULL REFERENCES agent (name),
    version      INTEGER NOT NULL,
    body         TEXT NOT NULL,
    declared_at  INTEGER NOT NULL,
    PRIMARY KEY (agent, version)
) WITHOUT ROWID, STRICT;

CREATE TABLE role (
    role   TEXT NOT NULL,
    agent  TEXT NOT NULL REFERENCES agent (name),
    PRIMARY KEY (role, agent)
) WITHOUT ROWID, STRICT;

CREATE INDEX role_of_agent ON role (agent);

CREATE TABLE standing (
    agent           TEXT PRIMARY KEY REFERENCES agent (name),
    state           TEXT NOT NULL,
    hits            INTEGER NOT NULL CHECK (hits >= 0),
    idle_streak     INTEGER NOT NULL DEFAULT 0 CHECK (idle_streak >= 0),
    failure_streak  INTEGER NOT NULL DEFAULT 0 CHECK (failure_streak >= 0),
    due_at          INTEGER,
    -- 1 while a timer wake of this agent waits: the agent is then found through its wake, not through due_at.
    asked           INTEGER NOT NULL DEFAULT 0 CHECK (asked IN (0, 1)),
    epoch           INTEGER NOT NULL DEFAULT 0,
    beat            INTEGER NOT NULL DEFAULT 0,
    gates           TEXT NOT NULL DEFAULT '{}',
    costs           TEXT NOT NULL DEFAULT '[]',
    last_outcome    TEXT CHECK (last_outcome IN ('done', 'no_work') OR last_outcome IN ('failed', 'killed')),
    last_ended_at   INTEGER
) WITHOUT ROWID, STRICT;

CREATE INDEX standing_due ON standing (due_at) WHERE due_at IS NOT NULL AND asked = 0;

CREATE TABLE item (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    kind         TEXT NOT NULL CHECK (kind IN ('message', 'task')),
    state        TEXT NOT NULL,
    agent        TEXT REFERENCES address (name),
    role         TEXT,
    -- Whose queue a task stands in: an address, or `role:` and the role.
    target       TEXT,
    sender       TEXT,
    origin       TEXT NOT NULL CHECK (origin IN ('external', 'agent') OR origin = 'operator'),
    subject      TEXT NOT NULL,
    body         TEXT NOT NULL,
    type         TEXT NOT NULL,
    priority     INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 3),
    ring         TEXT NOT NULL CHECK (ring IN ('silent', 'news') OR ring IN ('peer', 'operator')),
    -- When it rings, if nobody has shown it by then; a silent item has none, unless no timer would ever show it.
    ring_at      INTEGER,
    dedupe       TEXT,
    source       TEXT,
    external_id  TEXT,
    fingerprint  TEXT NOT NULL,
    shown        TEXT,
    -- The wake that this generation of the item asked for; one generation asks once.
    asked        INTEGER,
    -- How many runs saw this generation and failed.
    unanswered   INTEGER NOT NULL DEFAULT 0 CHECK (unanswered >= 0),
    -- The open run that holds it: a message is shown to one run at a time, a task is leased to one.
    held_by      INTEGER REFERENCES run (id),
    attempts     INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    max_retries  INTEGER,
    -- Where a task stands in its queue, the smallest first: since when it could have begun, less what its priority is worth.
    place        INTEGER NOT NULL DEFAULT 0,
    -- How long one attempt at it may take, in microseconds; the agent's own limit where it is NULL.
    timeout      INTEGER CHECK (timeout > 0),
    payload      TEXT,
    key          TEXT,
    not_before   INTEGER,
    tags         TEXT NOT NULL DEFAULT '[]',
    waits_for    INTEGER NOT NULL DEFAULT 0 CHECK (waits_for >= 0),
    -- 1 while an older one of its key is open: only the first of a key is looked at, however many come after it.
    behind       INTEGER NOT NULL DEFAULT 0 CHECK (behind IN (0, 1)),
    -- How many runs there are between it and what no run added.
    depth        INTEGER NOT NULL DEFAULT 0 CHECK (depth >= 0),
    reply_to     INTEGER,
    -- The first message of the conversation, where it is not itself.
    thread       INTEGER,
    by_run       INTEGER,
    -- A JSON object of the sender's own.
    metadata     TEXT NOT NULL DEFAULT '{}',
    result       TEXT,
    error        TEXT,
    created_at   INTEGER NOT NULL,
    closed_at    INTEGER,
    CHECK ((kind = 'message' AND state IN ('open', 'closed'))
        OR (kind = 'task' AND (state IN ('pending', 'in_progress') OR state IN ('failed', 'blocked')
            OR state IN ('completed', 'cancelled') OR state = 'dead_letter'))),
    CHECK ((closed_at IS NOT NULL) = (state IN ('closed', 'completed') OR state IN ('cancelled', 'dead_letter'))),
    CHECK ((kind = 'task' AND held_by IS NOT NULL) = (state = 'in_progress')),
    CHECK (held_by IS NULL OR closed_at IS NULL),
    CHECK (agent IS NOT NULL OR role IS NOT NULL),
    CHECK ((kind = 'task') = (target IS NOT NULL)),
    CHECK (ring = 'silent' OR ring_at IS NOT NULL),
    CHECK (external_id IS NULL OR source IS NOT NULL)
) STRICT;

CREATE UNIQUE INDEX item_dedupe ON item (dedupe) WHERE dedupe IS NOT NULL;
CREATE UNIQUE INDEX item_external ON item (source, agent, external_id) WHERE external_id IS NOT NULL AND closed_at IS NULL;
CREATE INDEX item_open ON item (agent, id) WHERE kind = 'message' AND closed_at IS NULL;
CREATE INDEX item_past ON item (agent, id) WHERE kind = 'message' AND closed_at IS NOT NULL;
CREATE INDEX item_thread ON item (thread, id) WHERE thread IS NOT NULL;
CREATE INDEX item_ringing ON item (ring_at) WHERE ring_at IS NOT NULL AND asked IS NULL AND closed_at IS NULL;
CREATE INDEX item_unanswered ON item (agent, ring_at)
    WHERE ring_at IS NOT NULL AND closed_at IS NULL AND (shown IS NULL OR shown <> fingerprint OR unanswered > 0);
CREATE INDEX item_held ON item (held_by) WHERE held_by IS NOT NULL;
-- `asked` is set while a wake for the task waits. A queue is read from its head, whoever else queues before it.
CREATE INDEX item_ready ON item (target, place, id)
    WHERE kind = 'task' AND state IN ('pending', 'failed') AND waits_for = 0 AND behind = 0 AND asked IS NULL AND not_before IS NULL;
CREATE INDEX item_first ON item (place, id)
    WHERE kind = 'task' AND state IN ('pending', 'failed') AND waits_for = 0 AND behind = 0 AND asked IS NULL AND not_before IS NULL;
CREATE INDEX item_later ON item (target, not_before)
    WHERE kind = 'task' AND state IN ('pending', 'failed') AND waits_for = 0 AND behind = 0 AND asked IS NULL AND not_before IS NOT NULL;
CREATE INDEX item_soonest ON item (not_before)
    WHERE kind = 'task' AND state IN ('pending', 'failed') AND waits_for = 0 AND behind = 0 AND asked IS NULL AND not_before IS NOT NULL;
CREATE INDEX item_key ON item (key, id) WHERE key IS NOT NULL AND closed_at IS NULL;
-- Of one key, one at a time, whoever is at it.
CREATE UNIQUE INDEX item_key_held ON item (key) WHERE key IS NOT NULL AND held_by IS NOT NULL;
CREATE INDEX item_queue ON item (target) WHERE kind = 'task' AND closed_at IS NULL;
CREATE INDEX item_of_source ON item (source) WHERE source IS NOT NULL AND kind = 'task' AND closed_at IS NULL;
CREATE INDEX item_by_run ON item (by_run) WHERE by_run IS NOT NULL AND closed_at IS NULL;
CREATE INDEX item_closed ON item (closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX item_keyed ON item (closed_at) WHERE closed_at IS NOT NULL AND dedupe IS NOT NULL;
-- What did not go well is found without what did.
CREATE INDEX item_aside ON item (state, id) WHERE kind = 'task' AND (state IN ('dead_letter', 'blocked') OR state IN ('failed', 'cancelled'));
-- What is gone may come back as the very thing that it was.
CREATE INDEX item_gone ON item (fingerprint) WHERE external_id IS NOT NULL AND closed_at IS NOT NULL;

CREATE TABLE dependency (
    item   INTEGER NOT NULL REFERENCES item (id),
    needs  INTEGER NOT NULL REFERENCES item (id),
    PRIMARY KEY (needs, item)
) WITHOUT ROWID, STRICT;

CREATE INDEX dependency_of ON dependency (item);

CREATE TABLE wake (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    agent         TEXT REFERENCES address (name),
    role          TEXT,
    cause         TEXT NOT NULL CHECK (cause IN ('timer', 'operator') OR cause IN ('task', 'peer') OR cause = 'news'),
    subject       TEXT NOT NULL CHECK (subject IN ('beat', 'inbox') OR subject = 'task'),
    state         TEXT NOT NULL CHECK (state IN ('waiting', 'joined') OR state IN ('admitted', 'refused')),
    sender        TEXT,
    reason        TEXT,
    item          INTEGER,
    task          INTEGER,
    source        TEXT,
    by_run        INTEGER,
    root          INTEGER,
    depth         INTEGER NOT NULL DEFAULT 0,
    lineage_usd   INTEGER NOT NULL DEFAULT 0,
    -- The declared instant of a one-off beat; '' for every other wake.
    slot          TEXT NOT NULL DEFAULT '',
    attempt       INTEGER NOT NULL DEFAULT 1,
    charged       INTEGER NOT NULL DEFAULT 0 CHECK (charged IN (0, 1)),
    joined        INTEGER REFERENCES wake (id),
    guard         TEXT,
    verdict       TEXT NOT NULL DEFAULT '',
    retry_at      INTEGER,
    -- Since when money that came back is on offer to it; NULL once it has been decided since.
    offered       INTEGER,
    rank          INTEGER NOT NULL,
    pool          TEXT NOT NULL CHECK (pool IN ('sessions', 'workers')),
    requested_at  INTEGER NOT NULL,
    decided_at    INTEGER,
    CHECK ((state = 'joined') = (joined IS NOT NULL)),
    CHECK (subject = 'task' OR agent IS NOT NULL),
    CHECK ((cause = 'task') = (subject = 'task')),
    CHECK (cause <> 'timer' OR subject = 'beat'),
    CHECK (cause NOT IN ('peer', 'news') OR subject = 'inbox')
) STRICT;

CREATE UNIQUE INDEX wake_waiting ON wake (coalesce(agent, ''), cause, subject, coalesce(task, 0), slot)
    WHERE state = 'waiting';
CREATE UNIQUE INDEX wake_slot ON wake (agent, slot) WHERE slot <> '';
CREATE INDEX wake_retry ON wake (retry_at) WHERE state = 'waiting' AND retry_at IS NOT NULL;
CREATE INDEX wake_for_slot ON wake (pool, requested_at) WHERE state = 'waiting' AND guard = 'slots';
CREATE INDEX wake_place ON wake (coalesce(agent, role), requested_at) WHERE state = 'waiting' AND guard = 'slots';
CREATE INDEX wake_of_agent ON wake (agent, id);
CREATE INDEX wake_task ON wake (coalesce(agent, 'role:' || role)) WHERE state = 'waiting' AND cause = 'task';
CREATE INDEX wake_of_run ON wake (by_run) WHERE by_run IS NOT NULL;
CREATE INDEX wake_root ON wake (root, id) WHERE root IS NOT NULL;
-- What was asked for under a key of its caller's.
CREATE INDEX wake_keyed ON wake (source) WHERE substr(source, 1, 4) = 'key:';
CREATE INDEX wake_busy ON wake (agent) WHERE state = 'waiting' AND (guard IN ('busy', 'state_gate') OR guard = 'spend');
CREATE INDEX wake_role ON wake (role) WHERE state = 'waiting' AND agent IS NULL;
CREATE INDEX wake_spend ON wake (requested_at) WHERE state = 'waiting' AND guard = 'spend';
CREATE INDEX wake_joined ON wake (joined) WHERE joined IS NOT NULL;
CREATE INDEX wake_decided ON wake (decided_at) WHERE state <> 'waiting';
CREATE INDEX wake_paused ON wake (agent) WHERE state = 'waiting' AND guard = 'paused';

CREATE TABLE run (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    agent          TEXT NOT NULL REFERENCES agent (name),
    address        TEXT NOT NULL REFERENCES address (name),
    wake           INTEGER NOT NULL REFERENCES wake (id),
    cause          TEXT NOT NULL,
    subject        TEXT NOT NULL CHECK (subject IN ('beat', 'inbox') OR subject = 'task'),
    pool           TEXT NOT NULL CHECK (pool IN ('sessions', 'workers')),
    state          TEXT NOT NULL CHECK (state IN ('admitted', 'running') OR state IN ('ended', 'void')),
    version        INTEGER NOT NULL,
    position       TEXT NOT NULL,
    hits           INTEGER NOT NULL,
    beat           INTEGER NOT NULL,
    epoch          INTEGER NOT NULL DEFAULT 0,
    attempt        INTEGER NOT NULL,
    -- 1 when this admission was the one that charged its wake.
    charged        INTEGER NOT NULL CHECK (charged IN (0, 1)),
    -- The total of the two who are paired by its wake.
    pair           TEXT NOT NULL,
    node           TEXT,
    lease_until    INTEGER,
    day            TEXT NOT NULL,
    fleet_day      TEXT NOT NULL,
    reserved_usd   INTEGER NOT NULL DEFAULT 0,
    reserved_tokens INTEGER NOT NULL DEFAULT 0,
    spent_usd      INTEGER NOT NULL DEFAULT 0,
    spent_tokens   INTEGER NOT NULL DEFAULT 0,
    estimated      INTEGER NOT NULL DEFAULT 0,
    outcome        TEXT CHECK (outcome IN ('done', 'no_work') OR outcome IN ('failed', 'killed')),
    reason         TEXT NOT NULL DEFAULT '',
    summary        TEXT NOT NULL DEFAULT '',
    admitted_at    INTEGER NOT NULL,
    started_at     INTEGER,
    ended_at       INTEGER,
    -- Who wants it ended, and whether without the grace.
    stop_by        TEXT,
    stop_at_once   INTEGER CHECK (stop_at_once IN (0, 1)),
    CHECK ((stop_by IS NULL) = (stop_at_once IS NULL)),
    CHECK ((outcome IS NOT NULL) = (state = 'ended')),
    CHECK ((ended_at IS NOT NULL) = (state IN ('ended', 'void'))),
    CHECK (state NOT IN ('running', 'ended') OR (started_at IS NOT NULL AND node IS NOT NULL AND epoch > 0)),
    CHECK (state <> 'running' OR lease_until IS NOT NULL)
) STRICT;

CREATE UNIQUE INDEX run_open ON run (agent) WHERE ended_at IS NULL;
CREATE INDEX run_pool ON run (pool) WHERE ended_at IS NULL;
CREATE INDEX run_unclaimed ON run (state, id) WHERE state = 'admitted';
CREATE INDEX run_of_agent ON run (agent, id);
CREATE INDEX run_burst ON run (agent, admitted_at) WHERE (cause IN ('timer', 'peer') OR cause = 'news') AND state <> 'void';
CREATE INDEX run_charged ON run (address, id) WHERE charged = 1 AND state <> 'void';
CREATE INDEX run_of_wake ON run (wake);
CREATE INDEX run_ended ON run (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX run_leased ON run (lease_until) WHERE state = 'running';
CREATE INDEX run_stopping ON run (node, id) WHERE stop_by IS NOT NULL AND ended_at IS NULL;

CREATE TABLE run_item (
    run          INTEGER NOT NULL REFERENCES run (id),
    item         INTEGER NOT NULL REFERENCES item (id),
    fingerprint  TEXT NOT NULL,
    PRIMARY KEY (run, item)
) WITHOUT ROWID, STRICT;

CREATE INDEX run_item_of ON run_item (item);

CREATE TABLE attempt (
    item        INTEGER NOT NULL REFERENCES item (id),
    run         INTEGER NOT NULL REFERENCES run (id),
    started_at  INTEGER NOT NULL,
    ended_at    INTEGER,
    outcome     TEXT CHECK (outcome IN ('done', 'no_work') OR outcome IN ('failed', 'killed')),
    counted     INTEGER NOT NULL DEFAULT 0,
    exit_code   INTEGER,
    error       TEXT NOT NULL DEFAULT '',
    -- The last of what it printed.
    output      TEXT NOT NULL DEFAULT '',
    -- Who took the task from the run while it was under way.
    stop_by     TEXT,
    PRIMARY KEY (item, run),
    CHECK ((ended_at IS NULL) = (outcome IS NULL))
) WITHOUT ROWID, STRICT;

CREATE INDEX attempt_of_run ON attempt (run);

CREATE INDEX attempt_stopping ON attempt (run) WHERE stop_by IS NOT NULL AND ended_at IS NULL;

-- Tasks that are put into their queue again and again.
CREATE TABLE recurrence (
    name         TEXT PRIMARY KEY,
    declaration  TEXT NOT NULL,
    next_at      INTEGER NOT NULL
) WITHOUT ROWID, STRICT;

CREATE INDEX recurrence_next ON recurrence (next_at);

CREATE TABLE step (
    subject   TEXT NOT NULL,
    name      TEXT NOT NULL,
    result    TEXT,
    saved_at  INTEGER NOT NULL,
    PRIMARY KEY (subject, name)
) WITHOUT ROWID, STRICT;

CREATE TABLE pause (
    scope   TEXT NOT NULL,
    owner   TEXT NOT NULL,
    reason  TEXT NOT NULL,
    since   INTEGER NOT NULL,
    until   INTEGER,
    PRIMARY KEY (scope, owner)
) WITHOUT ROWID, STRICT;

CREATE INDEX pause_until ON pause (until) WHERE until IS NOT NULL;

-- Sums that would be slow to count; kept in the transaction of what they sum, recounted by the audit.
CREATE TABLE total (
    scope    TEXT NOT NULL,
    day      TEXT NOT NULL,
    wakes    INTEGER NOT NULL DEFAULT 0 CHECK (wakes >= 0),
    ms       INTEGER NOT NULL DEFAULT 0 CHECK (ms >= 0),
    usd      INTEGER NOT NULL DEFAULT 0 CHECK (usd >= 0),
    tokens   INTEGER NOT NULL DEFAULT 0 CHECK (tokens >= 0),
    PRIMARY KEY (scope, day)
) WITHOUT ROWID, STRICT;

CREATE INDEX total_day ON total (day);

-- The engines that are or were at work here.
CREATE TABLE node (
    name     TEXT PRIMARY KEY,
    host     TEXT NOT NULL,
    url      TEXT NOT NULL,
    since    INTEGER NOT NULL,
    seen_at  INTEGER NOT NULL,
    left_at  INTEGER,
    -- For how long it counts as alive without a word.
    lease    INTEGER NOT NULL CHECK (lease >= 0)
) WITHOUT ROWID, STRICT;

-- Sources that somebody tends, or that cannot be read. Where nodes share a store, one of them tends each.
CREATE TABLE source (
    agent        TEXT NOT NULL REFERENCES address (name),
    source       TEXT NOT NULL,
    node         TEXT,
    lease_until  INTEGER,
    -- What was seen in an earlier one is not taken: another node had it in between, or has told of a run's own doings.
    tenure       INTEGER NOT NULL DEFAULT 0,
    -- Why it cannot be read, and since when.
    outage       TEXT,
    since        INTEGER,
    -- Which reason was told last, by an event, and when.
    told         TEXT,
    told_at      INTEGER,
    PRIMARY KEY (agent, source),
    CHECK ((node IS NULL) = (lease_until IS NULL)),
    CHECK ((outage IS NULL) = (since IS NULL)),
    CHECK ((outage IS NULL) = (told IS NULL)),
    CHECK ((told IS NULL) = (told_at IS NULL)),
    CHECK (node IS NOT NULL OR outage IS NOT NULL)
) WITHOUT ROWID, STRICT;

-- What runs printed and were told, for those who cannot read their folders: in pieces, each where the last one ended.
CREATE TABLE output (
    run     INTEGER NOT NULL REFERENCES run (id),
    stream  TEXT NOT NULL CHECK (stream IN ('stdout', 'stderr') OR stream = 'briefing'),
    start   INTEGER NOT NULL CHECK (start >= 0),
    data    BLOB NOT NULL CHECK (length(data) > 0),
    PRIMARY KEY (run, stream, start)
) STRICT;

CREATE TABLE event (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    kind    TEXT NOT NULL,
    at      INTEGER NOT NULL,
    agent   TEXT,
    wake    INTEGER,
    run     INTEGER,
    item    INTEGER,
    fields  TEXT NOT NULL DEFAULT '{}'
) STRICT;

CREATE INDEX event_of_agent ON event (agent, id) WHERE agent IS NOT NULL;
CREATE INDEX event_of_run ON event (run) WHERE run IS NOT NULL;

-- What a person did, which is little among all that happens.
CREATE INDEX event_act ON event (agent, id, kind)
    WHERE (kind IN ('declared', 'removed') OR kind IN ('set', 'paused') OR kind IN ('resumed', 'stopped')
        OR kind = 'task_changed');

-- Where the clock had been set back before an event: between two of these, later events have later instants.
CREATE TABLE reckoning (
    event  INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL
) STRICT;

CREATE TRIGGER event_reckons AFTER INSERT ON event
WHEN NEW.at < (SELECT at FROM event WHERE id < NEW.id ORDER BY id DESC LIMIT 1)
BEGIN INSERT INTO reckoning (event, at) VALUES (NEW.id, NEW.at); END;

CREATE TRIGGER event_is_append_only BEFORE UPDATE ON event
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
