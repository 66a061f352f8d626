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
    r.reserved_usd, r.reserved_tokens, r.admitted_at, r.started_at, w.item
FROM run r JOIN wake w ON w.id = r.wake JOIN address d ON d.name = r.address
WHERE r.state = 'admitted' ORDER BY r.id LIMIT :limit FOR NO KEY UPDATE OF r, d SKIP LOCKED;

-- name: next_epoch
UPDATE standing SET epoch = epoch + 1 WHERE agent = :agent;

-- name: start_run
UPDATE run SET state = 'running', node = :node, started_at = :now, lease_until = :lease_until,
    epoch = (SELECT epoch FROM standing WHERE agent = :agent)
WHERE id = :run AND state = 'admitted';

-- name: wake_row
SELECT id, agent, role, cause, subject, sender, reason, item, task, source, by_run, root, depth, lineage_usd, slot,
    attempt, charged, requested_at
FROM wake WHERE id = :wake;

-- name: last_run
SELECT outcome, reason, summary FROM run WHERE agent = :agent AND state = 'ended' ORDER BY id DESC LIMIT 1;

-- name: task_steps
SELECT a.item, s.name, s.result FROM attempt a JOIN step s ON s.subject = 'task:' || a.item
WHERE a.run = :run ORDER BY s.saved_at, s.name;

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

-- name: put_node
INSERT INTO node (name, seen_at) VALUES (:node, :now) ON CONFLICT (name) DO UPDATE SET seen_at = :now;

-- name: renew_run
UPDATE run SET lease_until = :lease_until WHERE id = :run AND epoch = :epoch AND node = :node AND state = 'running';

-- name: end_run
WITH over AS (
    UPDATE run SET state = 'ended', outcome = :outcome, reason = :reason, summary = :summary, ended_at = :now,
        spent_usd = :spent_usd, spent_tokens = :spent_tokens, estimated = :estimated
    WHERE id = :run AND epoch = :epoch AND state = 'running' RETURNING id
)
UPDATE slot SET run = NULL WHERE run IN (SELECT id FROM over);

-- name: move_standing
UPDATE standing SET state = :state, hits = :hits, idle_streak = :idle_streak, failure_streak = :failure_streak,
    due_at = :due_at, gates = :gates, costs = :costs, last_outcome = :last_outcome, last_ended_at = :now,
    beat = beat + :moved, asked = :asked
WHERE agent = :agent;

-- name: retry_busy
-- Also who waited for a gate that the run may have left behind, or for money that it may have changed the need of.
UPDATE wake SET retry_at = CASE WHEN cause = 'news' THEN :news_at ELSE :now END
WHERE state = 'waiting' AND guard IN ('busy', 'state_gate', 'spend') AND agent = :agent;

-- name: retry_shared
-- Whatever waits for an address or a role may have been told what held another agent: this one is free now.
UPDATE wake SET retry_at = :now
WHERE state = 'waiting' AND guard <> 'slots' AND slot = ''
    AND (agent = :address OR (agent IS NULL AND role IN (SELECT role FROM role WHERE agent = :agent)));
