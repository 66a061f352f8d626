-- name: lease_tasks
UPDATE item SET state = 'in_progress', held_by = :run, asked = :wake
WHERE (id = :task OR id IN (SELECT value FROM json_each(:tasks))) AND state IN ('pending', 'failed') AND held_by IS NULL;

-- name: put_attempts
-- At what was leased. Without the task that was asked for there is no run: then what is put here is none, and refused.
INSERT INTO attempt (item, run, started_at)
SELECT i.id, :run, :now FROM item i WHERE i.held_by = :run AND i.kind = 'task'
UNION ALL SELECT NULL, :run, :now WHERE NOT EXISTS (SELECT 1 FROM item i WHERE i.id = :task AND i.held_by = :run);

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
UPDATE attempt SET ended_at = :now, outcome = :outcome, counted = :counted, exit_code = :exit_code, error = :error,
    output = :output, started_at = max(started_at, min(:began, :now))
WHERE item = :item AND run = :run AND ended_at IS NULL;

-- name: end_done
-- Those that were done, and left nothing to be told.
UPDATE attempt SET ended_at = :now, outcome = 'done', counted = 1, exit_code = 0,
    started_at = max(started_at, min(:now, :began))
WHERE item = :item AND run = :run AND ended_at IS NULL;

-- name: settle_done
UPDATE item SET state = 'completed', held_by = NULL, asked = NULL, attempts = attempts + 1, not_before = NULL,
    error = NULL, result = NULL, shown = fingerprint, closed_at = :now
WHERE id IN (SELECT value FROM json_each(:tasks)) AND +held_by = :run;

-- name: settle_task
UPDATE item SET state = :state, held_by = NULL, asked = NULL, attempts = :attempts, not_before = :not_before,
    error = :error, result = :result, shown = fingerprint, closed_at = :closed_at
WHERE id = :item AND held_by = :run;

-- name: unlease_tasks
UPDATE item SET state = CASE WHEN attempts > 0 THEN 'failed' ELSE 'pending' END, held_by = NULL, asked = NULL
WHERE held_by = :run AND kind = 'task';

-- name: forget_attempts
DELETE FROM attempt WHERE run = :run AND ended_at IS NULL;
