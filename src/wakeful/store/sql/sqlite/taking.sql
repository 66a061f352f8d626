-- name: tried_in_run
SELECT item FROM attempt WHERE run = :run;

-- name: asked_in_queue
-- What a wake of its own waits for.
SELECT i.id, i.place FROM wake w JOIN item i ON i.id = w.task
WHERE w.state = 'waiting' AND w.cause = 'task' AND coalesce(w.agent, 'role:' || w.role) = :target
ORDER BY i.place, i.id LIMIT :limit;

-- name: task_to_take
-- Whose it is, if it could begin now, asked for or not.
SELECT i.id, i.target, i.asked, i.state, i.source FROM item i
WHERE i.id = :task AND i.kind = 'task' AND i.state IN ('pending', 'failed') AND i.waits_for = 0 AND i.behind = 0
    AND i.held_by IS NULL AND (i.not_before IS NULL OR i.not_before <= :now)
    AND (i.key IS NULL OR NOT EXISTS
        (SELECT 1 FROM item older WHERE older.key = i.key AND older.closed_at IS NULL AND older.id < i.id)
        AND NOT EXISTS (SELECT 1 FROM item held WHERE held.key = i.key AND held.key IS NOT NULL AND held.held_by IS NOT NULL)
        -- Taken from its run, and not ended yet.
        AND NOT EXISTS (SELECT 1 FROM attempt s JOIN item left_over ON left_over.id = s.item
            WHERE s.stop_by IS NOT NULL AND s.ended_at IS NULL AND left_over.key = i.key))
    AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || i.source);

-- name: take_task
UPDATE item SET state = 'in_progress', held_by = :run, asked = :wake
WHERE id = :task AND state IN ('pending', 'failed') AND held_by IS NULL;

-- name: put_attempt
INSERT INTO attempt (item, run, started_at) VALUES (:task, :run, :now);

-- name: decide_soon
-- What it waited for is no longer to be had: it is told so at once, and others of its queue are asked for.
UPDATE wake SET retry_at = :now WHERE id = :wake AND state = 'waiting';
