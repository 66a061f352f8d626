-- name: run_with_wake
SELECT r.id, r.agent, r.wake, r.cause, r.subject, r.pool, r.state, r.version, r.position, r.hits, r.beat, r.epoch,
    r.attempt, r.charged, r.pair, r.node, r.day, r.fleet_day, r.reserved_usd, r.reserved_tokens, r.admitted_at, r.started_at,
    r.ended_at, w.charged AS wake_charged, w.slot, r.address
FROM run r JOIN wake w ON w.id = r.wake WHERE r.id = :run;

-- name: void_run
WITH over AS (UPDATE run SET state = 'void', ended_at = :now WHERE id = :run AND ended_at IS NULL RETURNING id)
UPDATE slot SET run = NULL WHERE run IN (SELECT id FROM over);

-- name: wake_key
SELECT agent, cause, subject, task, slot FROM wake WHERE id = :wake;

-- name: wait_again
UPDATE wake SET state = 'waiting', attempt = attempt + :failed, retry_at = :retry_at, charged = :charged, guard = NULL
WHERE id = :wake;

-- name: join_wake
UPDATE wake SET state = 'joined', joined = :joined, charged = :charged WHERE id = :wake;

-- name: admitted_runs
-- With their addresses, whose inbox they will hold; what somebody else is about to claim is left to them.
SELECT r.id, r.agent, r.address, r.wake, r.cause, r.subject, r.version, r.position, r.hits, r.epoch, r.attempt,
    r.reserved_usd, r.reserved_tokens, r.admitted_at, r.started_at,
    w.id AS wake_id, w.agent AS wake_agent, w.role AS wake_role, w.cause AS wake_cause, w.subject AS wake_subject,
    w.sender AS wake_sender, w.reason AS wake_reason, w.item AS wake_item, w.task AS wake_task, w.source AS wake_source,
    w.by_run AS wake_by_run, w.root AS wake_root, w.depth AS wake_depth, w.lineage_usd AS wake_lineage_usd,
    w.slot AS wake_slot, w.attempt AS wake_attempt, w.charged AS wake_charged, w.requested_at AS wake_requested_at
FROM run r JOIN wake w ON w.id = r.wake JOIN address d ON d.name = r.address
WHERE r.state = 'admitted' ORDER BY r.id LIMIT :limit FOR NO KEY UPDATE OF r, d SKIP LOCKED;

-- name: next_epoch
UPDATE standing SET epoch = r.epoch FROM json_to_recordset(:rows::json) AS r (agent text, epoch bigint)
WHERE standing.agent = r.agent;

-- name: start_run
UPDATE run SET state = 'running', node = r.node, started_at = r.now, lease_until = lease_clock() + r.lease, epoch = r.epoch
FROM json_to_recordset(:rows::json) AS r (run bigint, epoch bigint, node text, now bigint, lease bigint)
WHERE run.id = r.run AND run.state = 'admitted';

-- name: run_agent
-- Whose run it is: how it stands, as what it is declared, whether a beat of it waits, and how it last ended.
SELECT s.agent, s.state, s.hits, s.idle_streak, s.failure_streak, s.due_at, s.epoch, s.beat, s.gates, s.costs,
    s.last_outcome, s.last_ended_at, a.name, a.address, a.version, a.declaration, a.overrides, a.enabled, a.removed_at,
    (SELECT w.id FROM wake w WHERE coalesce(w.agent, '') = r.agent AND w.cause = 'timer' AND w.subject = 'beat'
        AND coalesce(w.task, 0) = 0 AND w.slot = '' AND w.state = 'waiting') AS timer,
    e.outcome AS ended_outcome, e.reason AS ended_reason, e.summary AS ended_summary
FROM run r JOIN standing s ON s.agent = r.agent JOIN agent a ON a.name = r.agent
LEFT JOIN run e ON e.id = (SELECT o.id FROM run o WHERE o.agent = r.agent AND o.state = 'ended' ORDER BY o.id DESC LIMIT 1)
WHERE r.id = :run;

-- name: task_steps
SELECT a.item, s.name, s.result FROM attempt a JOIN step s ON s.subject = 'task:' || a.item
WHERE a.run = :run ORDER BY s.saved_at, s.name;

-- name: beat_steps
SELECT NULL AS item, p.name, p.result FROM run r JOIN standing s ON s.agent = r.agent
JOIN step p ON p.subject = 'beat:' || s.agent || ':' || s.beat WHERE r.id = :run ORDER BY p.saved_at, p.name;

-- name: ended_runs
-- From the newest back: one agent's runs end in the order of their ids, whatever its clock said.
SELECT id, subject, position, cause, outcome, reason, summary, ended_at FROM run
WHERE agent = :agent AND state = 'ended' ORDER BY id DESC LIMIT :limit;

-- name: dead_tasks
SELECT DISTINCT i.id, i.subject, i.error, i.closed_at FROM run r JOIN attempt a ON a.run = r.id JOIN item i ON i.id = a.item
WHERE r.agent = :agent AND r.id > :after AND i.state = 'dead_letter' ORDER BY i.closed_at, i.id LIMIT :limit;

-- name: restless_items
SELECT id, subject FROM item
WHERE agent IN (:agent, :address) AND kind = 'message' AND closed_at IS NULL
    AND (unanswered >= :unanswered OR (SELECT count(*) FROM run_item s WHERE s.item = item.id) >= :shown)
ORDER BY id LIMIT :limit;

-- name: stop_run
UPDATE run SET stop_by = coalesce(stop_by, :by), stop_at_once = greatest(coalesce(stop_at_once, 0), :at_once)
WHERE id = :run AND state = 'running' AND (stop_by IS NULL OR stop_at_once < :at_once);

-- name: stopping_runs
SELECT id, epoch, stop_by, stop_at_once FROM run
WHERE node = :node AND stop_by IS NOT NULL AND ended_at IS NULL ORDER BY id;

-- name: stopping_tasks
SELECT a.run, r.epoch, a.item, a.stop_by FROM attempt a JOIN run r ON r.id = a.run
-- What a run took beside its subject is no reason to end the run: it is told when it speaks of the task.
WHERE a.stop_by IS NOT NULL AND a.ended_at IS NULL AND r.node = :node AND r.ended_at IS NULL AND r.subject = 'task'
ORDER BY a.run, a.item;

-- name: orphaned_runs
-- With their addresses, as whoever ends them needs; what somebody else is ending, or renewing, is left to them.
SELECT r.id, r.epoch FROM run r JOIN address d ON d.name = r.address
WHERE r.state = 'running' AND r.lease_until <= (SELECT lease_clock())
ORDER BY r.lease_until, r.id LIMIT :limit FOR NO KEY UPDATE OF r, d SKIP LOCKED;

-- name: end_run
WITH over AS (
    UPDATE run SET state = 'ended', outcome = r.outcome, reason = r.reason, summary = r.summary, ended_at = r.now,
        spent_usd = r.spent_usd, spent_tokens = r.spent_tokens, estimated = r.estimated
    FROM json_to_recordset(:rows::json) AS r (run bigint, epoch bigint, outcome text, reason text, summary text, now bigint,
        spent_usd bigint, spent_tokens bigint, estimated smallint)
    WHERE run.id = r.run AND run.epoch = r.epoch AND run.state = 'running' RETURNING run.id
)
UPDATE slot SET run = NULL FROM over WHERE slot.run = over.id;

-- name: move_standing
UPDATE standing SET state = r.state, hits = r.hits, idle_streak = r.idle_streak, failure_streak = r.failure_streak,
    due_at = r.due_at, gates = r.gates, costs = r.costs, last_outcome = r.last_outcome, last_ended_at = r.now,
    beat = beat + r.moved, asked = r.asked
FROM json_to_recordset(:rows::json) AS r (agent text, state text, hits int, idle_streak int, failure_streak int,
    due_at bigint, gates text, costs text, last_outcome text, now bigint, moved bigint, asked smallint)
WHERE standing.agent = r.agent;

-- name: retry_busy
-- Also who waited for a gate that the run may have left behind, or for money that it may have changed the need of.
UPDATE wake SET retry_at = CASE WHEN cause = 'news' THEN :news_at::bigint ELSE :now::bigint END
WHERE state = 'waiting' AND guard IN ('busy', 'state_gate', 'spend') AND agent = :agent;

-- name: retry_shared
-- Whatever waits for an address or a role may have been told what held another agent: this one is free now.
UPDATE wake SET retry_at = :now
WHERE state = 'waiting' AND guard <> 'slots' AND slot = ''
    AND (agent = :address OR (agent IS NULL AND role IN (SELECT role FROM role WHERE agent = :agent)));
