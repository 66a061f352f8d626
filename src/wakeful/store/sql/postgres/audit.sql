-- name: kept_numbers
-- What is undone has used up its numbers: a gap says nothing here.
SELECT 0 AS seq, 0 AS gaps WHERE :table::text IS NULL;

-- name: kept_address
SELECT name, timerless FROM address WHERE name > :after ORDER BY name LIMIT :limit;

-- name: kept_fleet
SELECT id, timezone, sessions, workers, recurrences FROM fleet WHERE id > :after ORDER BY id LIMIT :limit;

-- name: kept_agent
SELECT name, address, version, declaration, overrides, enabled, removed_at FROM agent
WHERE name > :after ORDER BY name LIMIT :limit;

-- name: kept_declaration
SELECT agent, version, body, declared_at FROM declaration
WHERE (agent, version) > (:after, :beyond) ORDER BY agent, version LIMIT :limit;

-- name: kept_role
SELECT role, agent FROM role WHERE (role, agent) > (:after, :beyond) ORDER BY role, agent LIMIT :limit;

-- name: kept_standing
SELECT agent, state, hits, idle_streak, failure_streak, due_at, asked, epoch, beat, gates, costs, last_outcome,
    last_ended_at
FROM standing WHERE agent > :after ORDER BY agent LIMIT :limit;

-- name: kept_item
-- Without what people wrote: it is long, and nothing can be held against it.
SELECT id, kind, state, agent, role, target, origin, priority, ring, ring_at, dedupe, source, external_id, fingerprint,
    shown, asked, unanswered, held_by, attempts, max_retries, place, not_before, waits_for, reply_to, thread, by_run,
    error, created_at, closed_at, key, depth, behind
FROM item WHERE id > :after ORDER BY id LIMIT :limit;

-- name: kept_dependency
SELECT item, needs FROM dependency WHERE (needs, item) > (:after, :beyond) ORDER BY needs, item LIMIT :limit;

-- name: kept_wake
SELECT id, agent, role, cause, subject, state, sender, item, task, source, by_run, root, depth, slot, attempt, charged,
    joined, guard, verdict, retry_at, rank, pool, requested_at, decided_at
FROM wake WHERE id > :after ORDER BY id LIMIT :limit;

-- name: kept_run
SELECT id, agent, address, wake, cause, subject, pool, state, version, position, hits, beat, epoch, attempt, charged,
    pair, node, lease_until, day, fleet_day, reserved_usd, reserved_tokens, spent_usd, spent_tokens, estimated, outcome,
    reason, admitted_at, started_at, ended_at, stop_by
FROM run WHERE id > :after ORDER BY id LIMIT :limit;

-- name: kept_run_item
SELECT run, item, fingerprint FROM run_item WHERE (run, item) > (:after, :beyond) ORDER BY run, item LIMIT :limit;

-- name: kept_attempt
SELECT item, run, started_at, ended_at, outcome, counted, error, stop_by FROM attempt
WHERE (item, run) > (:after, :beyond) ORDER BY item, run LIMIT :limit;

-- name: kept_recurrence
SELECT name, declaration, next_at FROM recurrence WHERE name > :after ORDER BY name LIMIT :limit;

-- name: kept_step
SELECT subject, name, saved_at FROM step WHERE (subject, name) > (:after, :beyond) ORDER BY subject, name LIMIT :limit;

-- name: kept_pause
SELECT scope, owner, reason, since, until FROM pause
WHERE (scope, owner) > (:after, :beyond) ORDER BY scope, owner LIMIT :limit;

-- name: kept_total
-- Several who write at once have a part each.
SELECT scope, day, sum(wakes)::bigint AS wakes, sum(ms)::bigint AS ms, sum(usd)::bigint AS usd, sum(tokens)::bigint AS tokens
FROM total WHERE (scope, day) > (:after, :beyond) GROUP BY scope, day ORDER BY scope, day LIMIT :limit;

-- name: kept_node
SELECT name, seen_at, left_at, lease FROM node WHERE name > :after ORDER BY name LIMIT :limit;

-- name: kept_source
SELECT agent, source, node, outage, since, told, told_at FROM source
WHERE (agent, source) > (:after, :beyond) ORDER BY agent, source LIMIT :limit;

-- name: kept_output
-- Of each run and stream: how much there is, and how far it goes.
SELECT run, stream, sum(length(data))::bigint AS length, max(start + length(data))::bigint AS reaches FROM output
WHERE (run, stream) > (:after, :beyond) GROUP BY run, stream ORDER BY run, stream LIMIT :limit;

-- name: kept_event
SELECT id, kind, at, agent, wake, run, item, fields FROM event WHERE id > :after ORDER BY id LIMIT :limit;

-- name: kept_reckoning
SELECT event, at FROM reckoning WHERE event > :after ORDER BY event LIMIT :limit;

-- name: kept_slot
SELECT pool, number, run FROM slot WHERE (pool, number) > (:after, :beyond) ORDER BY pool, number LIMIT :limit;
