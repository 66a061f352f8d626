-- Rows come in no order but the one that is asked for: whatever decides in which order things are written says one.

-- name: known_agents
SELECT name, address, version, declaration, overrides, enabled, removed_at FROM agent ORDER BY name;

-- name: agent_row
SELECT name, address, version, declaration, overrides, enabled, removed_at FROM agent WHERE name = :agent;

-- name: pinned_declaration
SELECT body FROM declaration WHERE agent = :agent AND version = :version;

-- name: put_fleet
INSERT INTO fleet (id, timezone, sessions, workers, recurrences) VALUES (1, :timezone, :sessions, :workers, :recurrences)
ON CONFLICT (id) DO UPDATE SET timezone = :timezone, sessions = :sessions, workers = :workers, recurrences = :recurrences;

-- name: put_address
INSERT INTO address (name, timerless) VALUES (:name, :timerless)
ON CONFLICT (name) DO UPDATE SET timerless = :timerless;

-- name: put_agent
INSERT INTO agent (name, address, version, declaration, enabled) VALUES (:name, :address, :version, :declaration, :enabled)
ON CONFLICT (name) DO UPDATE SET
    address = :address, version = :version, declaration = :declaration, enabled = :enabled, removed_at = NULL;

-- name: put_declaration
INSERT INTO declaration (agent, version, body, declared_at) VALUES (:name, :version, :declaration, :now);

-- name: remove_agent
UPDATE agent SET removed_at = :now WHERE name = :agent;

-- name: set_overrides
UPDATE agent SET overrides = :overrides, version = :version WHERE name = :agent;

-- name: forget_roles
DELETE FROM role WHERE agent = :agent;

-- name: put_role
INSERT INTO role (role, agent) VALUES (:role, :agent);

-- name: put_standing
INSERT INTO standing (agent, state, hits, due_at) VALUES (:agent, :state, :hits, :due_at)
ON CONFLICT (agent) DO UPDATE SET due_at = :due_at;

-- name: set_due
UPDATE standing SET due_at = :due_at WHERE agent = :agent;

-- name: timer_standings
SELECT agent, due_at, idle_streak FROM standing WHERE due_at IS NOT NULL ORDER BY agent;

-- name: hold_timers
UPDATE wake SET retry_at = :until WHERE state = 'waiting' AND cause = 'timer' AND slot = '' AND retry_at < :until;

-- name: standing_row
SELECT agent, state, hits, idle_streak, failure_streak, due_at, epoch, beat, gates, costs, last_outcome, last_ended_at
FROM standing WHERE agent = :agent;

-- name: put_one_off
INSERT INTO wake (agent, cause, subject, state, slot, retry_at, rank, pool, requested_at)
SELECT :agent, 'timer', 'beat', 'waiting', :slot, :at, :rank, 'sessions', :now
WHERE NOT EXISTS (SELECT 1 FROM wake w WHERE w.agent = :agent AND w.slot = :slot AND w.slot <> '')
ON CONFLICT DO NOTHING;

-- name: declared_one_offs
SELECT id, slot FROM wake WHERE agent = :agent AND slot <> '' AND state = 'waiting' AND sender IS NULL ORDER BY id;

-- name: withdraw_one_off
UPDATE wake SET state = 'refused', guard = 'moot', verdict = 'it is no longer declared', decided_at = :now
WHERE id = :wake;

-- name: retry_agent_wakes
UPDATE wake SET retry_at = :now WHERE state = 'waiting' AND guard IS NOT NULL AND agent IN (:agent, :address) AND slot = '';

-- name: roles_of
SELECT role FROM role WHERE agent = :agent;

-- name: retry_role_wakes
UPDATE wake SET retry_at = :now
WHERE state = 'waiting' AND guard IS NOT NULL AND agent IS NULL AND role = :role;

-- name: put_pause
INSERT INTO pause (scope, owner, reason, since, until) VALUES (:scope, :owner, :reason, :since, :until)
ON CONFLICT (scope, owner) DO UPDATE SET reason = :reason, since = :since, until = :until;

-- name: pause_rows
SELECT scope, owner, reason, since, until FROM pause ORDER BY since, scope, owner;

-- name: pauses_of
SELECT scope, owner, reason, since, until FROM pause
WHERE scope = :scope AND (:owner::text IS NULL OR owner = :owner::text) ORDER BY owner;

-- name: expired_pauses
SELECT scope, owner, reason, since, until FROM pause WHERE until IS NOT NULL AND until <= :now ORDER BY scope, owner;

-- name: delete_pause
DELETE FROM pause WHERE scope = :scope AND owner = :owner;

-- name: paused_wakes
SELECT id, agent, cause FROM wake
WHERE state = 'waiting' AND guard = 'paused' AND (retry_at IS NULL OR retry_at > :now) ORDER BY id;

-- name: retry_wake
UPDATE wake SET retry_at = :at WHERE id = :wake AND state = 'waiting';

-- name: unclaimed_runs
-- What somebody else is about to claim, or to void, is left to them.
SELECT r.id, r.agent, r.address, r.epoch, w.source
FROM run r JOIN wake w ON w.id = r.wake JOIN address d ON d.name = r.address
WHERE r.state = 'admitted' AND r.admitted_at <= :before ORDER BY r.id FOR NO KEY UPDATE OF r, d SKIP LOCKED;

-- name: put_event
-- Whoever writes events stands, until the commit, at the last id that was given before theirs (see `last_settled`).
WITH entered AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared(:log + last_value) FROM event_id_seq)
INSERT INTO event (kind, at, agent, wake, run, item, fields)
SELECT e.kind, e.at, e.agent, e.wake, e.run, e.item, e.fields FROM entered, ROWS FROM (
    json_to_recordset(:rows::json) AS (kind text, at bigint, agent text, wake bigint, run bigint, item bigint, fields text)
) WITH ORDINALITY AS e (kind, at, agent, wake, run, item, fields, place) ORDER BY e.place;

-- name: recurrence_rows
SELECT name, declaration, next_at FROM recurrence ORDER BY name;

-- name: due_recurrences
-- Two nodes that look at once take one after the other.
SELECT name, declaration, next_at FROM recurrence WHERE next_at <= :now ORDER BY name FOR UPDATE;

-- name: put_recurrence
INSERT INTO recurrence (name, declaration, next_at) VALUES (:name, :declaration, :next_at)
ON CONFLICT (name) DO UPDATE SET declaration = :declaration, next_at = :next_at;

-- name: set_next
UPDATE recurrence SET next_at = :next_at WHERE name = :name;

-- name: forget_recurrence
DELETE FROM recurrence WHERE name = :name;

-- name: open_of_source
SELECT id, state FROM item WHERE source = :source AND source IS NOT NULL AND kind = 'task' AND closed_at IS NULL LIMIT 1;
