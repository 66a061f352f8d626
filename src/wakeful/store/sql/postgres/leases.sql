-- name: lease_tasks
-- The one that was asked for, and of the others those that nobody else is taking.
UPDATE item SET state = 'in_progress', held_by = :run, asked = :wake
WHERE item.id = ANY (:task::bigint || ARRAY(SELECT i.id FROM item i
        WHERE i.id = ANY (ARRAY(SELECT json_array_elements_text(:tasks::json)::bigint))
            AND i.state IN ('pending', 'failed') AND i.held_by IS NULL ORDER BY i.id FOR UPDATE SKIP LOCKED))
    AND item.state IN ('pending', 'failed') AND item.held_by IS NULL;

-- name: put_attempts
-- At what was leased. Without the task that was asked for there is no run: then what is put here is none, and refused.
INSERT INTO attempt (item, run, started_at)
SELECT i.id, :run::bigint, :now::bigint FROM item i WHERE i.held_by = :run AND i.kind = 'task'
UNION ALL SELECT NULL, :run::bigint, :now::bigint
WHERE NOT EXISTS (SELECT 1 FROM item i WHERE i.id = :task AND i.held_by = :run);

-- name: tasks_of_run
SELECT i.id, i.kind, i.state, i.agent, i.role, i.sender, i.origin, i.subject, i.body, i.type, i.priority, i.ring,
    i.fingerprint, i.shown, i.asked, i.unanswered, i.held_by, i.attempts, i.max_retries, i.key, i.source,
    i.external_id, i.not_before, i.result, i.error, i.created_at, i.closed_at, i.by_run,
    i.reply_to, i.thread, i.metadata, i.payload, i.timeout, i.tags, i.dedupe, i.waits_for
FROM attempt a JOIN item i ON i.id = a.item
WHERE a.run = :run AND a.ended_at IS NULL ORDER BY i.place, i.id;

-- name: run_owner
SELECT r.id, r.state, r.epoch, a.name, a.version FROM run r JOIN agent a ON a.name = r.agent WHERE r.id = :run;

-- name: tasks_under_way
SELECT i.id, i.attempts, i.max_retries, i.held_by, i.state, i.key FROM attempt a JOIN item i ON i.id = a.item
WHERE a.run = :run AND a.ended_at IS NULL;

-- name: end_attempt
-- Whoever ends one has read it as open, under the lock of its address.
UPDATE attempt SET ended_at = r.now, outcome = r.outcome, counted = r.counted, exit_code = r.exit_code, error = r.error,
    output = r.output, started_at = greatest(started_at, least(r.began, r.now))
FROM json_to_recordset(:rows::json) AS r (item bigint, run bigint, now bigint, outcome text, counted smallint,
    exit_code int, error text, output text, began bigint)
WHERE attempt.item = r.item AND attempt.run = r.run;

-- name: end_done
-- Those that were done, and left nothing to be told. Whoever ends them has read them as open, as above.
UPDATE attempt SET ended_at = r.now, outcome = 'done', counted = 1, exit_code = 0,
    started_at = greatest(started_at, least(r.began, r.now))
FROM json_to_recordset(:rows::json) AS r (item bigint, run bigint, now bigint, began bigint)
WHERE attempt.item = r.item AND attempt.run = r.run;

-- name: settle_done
UPDATE item SET state = 'completed', held_by = NULL, asked = NULL, attempts = attempts + 1, not_before = NULL,
    error = NULL, result = NULL, shown = fingerprint, closed_at = :now
FROM json_array_elements_text(:tasks::json) AS j (value)
WHERE item.id = j.value::bigint AND item.held_by = :run;

-- name: settle_task
UPDATE item SET state = r.state, held_by = NULL, asked = NULL, attempts = r.attempts, not_before = r.not_before,
    error = r.error, result = r.result, shown = item.fingerprint, closed_at = r.closed_at
FROM json_to_recordset(:rows::json) AS r (item bigint, run bigint, state text, attempts int, not_before bigint,
    error text, result text, closed_at bigint)
WHERE item.id = r.item AND item.held_by = r.run;

-- name: unlease_tasks
UPDATE item SET state = CASE WHEN attempts > 0 THEN 'failed' ELSE 'pending' END, held_by = NULL, asked = NULL
WHERE held_by = :run AND kind = 'task';

-- name: forget_attempts
DELETE FROM attempt WHERE run = :run AND ended_at IS NULL;
