-- name: lease_task
UPDATE item SET state = 'in_progress', held_by = r.run, asked = r.wake
FROM json_to_recordset(:rows::json) AS r (item bigint, run bigint, wake bigint)
WHERE item.id = r.item AND item.state IN ('pending', 'failed') AND item.held_by IS NULL;

-- name: put_attempt
INSERT INTO attempt (item, run, started_at)
SELECT r.item, r.run, r.now FROM json_to_recordset(:rows::json) AS r (item bigint, run bigint, now bigint);

-- name: tasks_of_run
SELECT i.id, i.kind, i.state, i.agent, i.role, i.sender, i.origin, i.subject, i.body, i.type, i.priority, i.ring,
    i.fingerprint, i.shown, i.asked, i.unanswered, i.held_by, i.attempts, i.max_retries, i.key, i.source,
    i.external_id, i.not_before, i.result, i.error, i.created_at, i.closed_at, i.by_run,
    i.reply_to, i.thread, i.metadata
FROM attempt a JOIN item i ON i.id = a.item
WHERE a.run = :run AND a.ended_at IS NULL ORDER BY i.priority DESC, i.id;

-- name: task_of_run
SELECT i.id, i.kind, i.state, i.agent, i.role, i.sender, i.origin, i.subject, i.body, i.type, i.priority, i.ring,
    i.fingerprint, i.shown, i.asked, i.unanswered, i.held_by, i.attempts, i.max_retries, i.key, i.source,
    i.external_id, i.not_before, i.result, i.error, i.created_at, i.closed_at, i.by_run,
    i.reply_to, i.thread, i.metadata
FROM attempt a JOIN item i ON i.id = a.item
WHERE a.item = :item AND a.run = :run AND a.ended_at IS NULL;

-- name: end_attempt
-- Whoever ends one has read it as open, under the lock of its address.
UPDATE attempt SET ended_at = r.now, outcome = r.outcome, counted = r.counted, exit_code = r.exit_code, error = r.error
FROM json_to_recordset(:rows::json) AS r (item bigint, run bigint, now bigint, outcome text, counted smallint,
    exit_code int, error text)
WHERE attempt.item = r.item AND attempt.run = r.run;

-- name: settle_task
UPDATE item SET state = r.state, held_by = NULL, asked = NULL, attempts = r.attempts, not_before = r.not_before,
    error = r.error, result = coalesce(r.result, item.result), shown = item.fingerprint, closed_at = r.closed_at
FROM json_to_recordset(:rows::json) AS r (item bigint, run bigint, state text, attempts int, not_before bigint,
    error text, result text, closed_at bigint)
WHERE item.id = r.item AND item.held_by = r.run;

-- name: unlease_tasks
UPDATE item SET state = CASE WHEN attempts > 0 THEN 'failed' ELSE 'pending' END, held_by = NULL, asked = NULL
WHERE held_by = :run AND kind = 'task';

-- name: forget_attempts
DELETE FROM attempt WHERE run = :run AND ended_at IS NULL;
