-- name: put_dependency
INSERT INTO dependency (item, needs) VALUES (:item, :needs);

-- name: open_needs
SELECT id, state FROM item WHERE id = :needs;

-- name: first_ready
-- The heads of all queues together, as far as the window goes; `open` says whether one may be offered.
SELECT i.id, i.agent, i.role, i.priority, i.created_at, i.source, i.by_run,
    (i.key IS NULL OR NOT EXISTS
        (SELECT 1 FROM item older WHERE older.key = i.key AND older.closed_at IS NULL AND older.id < i.id))
    AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || i.source)
    AND NOT EXISTS (SELECT 1 FROM wake w WHERE w.state = 'waiting' AND w.cause = 'task'
        AND coalesce(w.agent, 'role:' || w.role) = i.target
        AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || w.source))
    AND (EXISTS (SELECT 1 FROM role o WHERE i.agent IS NULL AND o.role = i.role)
        OR EXISTS (SELECT 1 FROM agent a WHERE a.name = i.agent AND a.removed_at IS NULL AND a.enabled)
        OR EXISTS (SELECT 1 FROM agent a WHERE a.address = i.agent AND a.removed_at IS NULL AND a.enabled)) AS open
FROM item i
WHERE i.kind = 'task' AND i.state IN ('pending', 'failed') AND i.waits_for = 0 AND i.asked IS NULL AND i.not_before IS NULL
ORDER BY i.priority DESC, i.id LIMIT :window;

-- name: first_later
-- The heads of all queues together, as far as the window goes; `open` says whether one may be offered.
SELECT i.id, i.agent, i.role, i.priority, i.created_at, i.source, i.by_run,
    (i.key IS NULL OR NOT EXISTS
        (SELECT 1 FROM item older WHERE older.key = i.key AND older.closed_at IS NULL AND older.id < i.id))
    AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || i.source)
    AND NOT EXISTS (SELECT 1 FROM wake w WHERE w.state = 'waiting' AND w.cause = 'task'
        AND coalesce(w.agent, 'role:' || w.role) = i.target
        AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || w.source))
    AND (EXISTS (SELECT 1 FROM role o WHERE i.agent IS NULL AND o.role = i.role)
        OR EXISTS (SELECT 1 FROM agent a WHERE a.name = i.agent AND a.removed_at IS NULL AND a.enabled)
        OR EXISTS (SELECT 1 FROM agent a WHERE a.address = i.agent AND a.removed_at IS NULL AND a.enabled)) AS open
FROM item i
WHERE i.kind = 'task' AND i.state IN ('pending', 'failed') AND i.waits_for = 0 AND i.asked IS NULL AND i.not_before IS NOT NULL AND i.not_before <= :now
ORDER BY i.not_before LIMIT :window;

-- name: ready_targets
-- From target to target, however long their queues; but those only for whom nobody waits yet, and somebody is there.
WITH RECURSIVE targets (target) AS (
    SELECT min(target) FROM item WHERE kind = 'task' AND state IN ('pending', 'failed') AND waits_for = 0 AND asked IS NULL
        AND not_before IS NULL
    UNION ALL
    SELECT (SELECT min(i.target) FROM item i WHERE i.target > targets.target AND i.kind = 'task' AND state IN ('pending', 'failed') AND waits_for = 0 AND asked IS NULL
        AND not_before IS NULL)
    FROM targets WHERE targets.target IS NOT NULL
)
SELECT t.target FROM targets t
WHERE t.target IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM wake w WHERE w.state = 'waiting' AND w.cause = 'task'
        AND coalesce(w.agent, 'role:' || w.role) = t.target
        AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || w.source))
    AND (EXISTS (SELECT 1 FROM role o WHERE substr(t.target, 1, 5) = 'role:' AND o.role = substr(t.target, 6))
        OR EXISTS (SELECT 1 FROM agent a WHERE a.name = t.target AND a.removed_at IS NULL AND a.enabled)
        OR EXISTS (SELECT 1 FROM agent a WHERE a.address = t.target AND a.removed_at IS NULL AND a.enabled));

-- name: later_targets
-- From target to target, however long their queues; but those only for whom nobody waits yet, and somebody is there.
WITH RECURSIVE targets (target) AS (
    SELECT min(target) FROM item WHERE kind = 'task' AND state IN ('pending', 'failed') AND waits_for = 0 AND asked IS NULL
        AND not_before IS NOT NULL
    UNION ALL
    SELECT (SELECT min(i.target) FROM item i WHERE i.target > targets.target AND i.kind = 'task' AND state IN ('pending', 'failed') AND waits_for = 0 AND asked IS NULL
        AND not_before IS NOT NULL)
    FROM targets WHERE targets.target IS NOT NULL
)
SELECT t.target FROM targets t
WHERE t.target IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM wake w WHERE w.state = 'waiting' AND w.cause = 'task'
        AND coalesce(w.agent, 'role:' || w.role) = t.target
        AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || w.source))
    AND (EXISTS (SELECT 1 FROM role o WHERE substr(t.target, 1, 5) = 'role:' AND o.role = substr(t.target, 6))
        OR EXISTS (SELECT 1 FROM agent a WHERE a.name = t.target AND a.removed_at IS NULL AND a.enabled)
        OR EXISTS (SELECT 1 FROM agent a WHERE a.address = t.target AND a.removed_at IS NULL AND a.enabled));

-- name: ready_tasks
SELECT i.id, i.agent, i.role, i.priority, i.created_at, i.source, i.by_run FROM item i
WHERE i.target = :target AND i.kind = 'task' AND i.state IN ('pending', 'failed') AND i.waits_for = 0
    AND i.asked IS NULL AND i.not_before IS NULL
    AND (i.key IS NULL OR NOT EXISTS
        (SELECT 1 FROM item older WHERE older.key = i.key AND older.closed_at IS NULL AND older.id < i.id))
    AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || i.source)
ORDER BY i.priority DESC, i.id LIMIT :limit;

-- name: later_tasks
SELECT i.id, i.agent, i.role, i.priority, i.created_at, i.source, i.by_run FROM item i
WHERE i.target = :target AND i.kind = 'task' AND i.state IN ('pending', 'failed') AND i.waits_for = 0
    AND i.asked IS NULL AND i.not_before IS NOT NULL AND i.not_before <= :now
    AND (i.key IS NULL OR NOT EXISTS
        (SELECT 1 FROM item older WHERE older.key = i.key AND older.closed_at IS NULL AND older.id < i.id))
    AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || i.source)
ORDER BY i.not_before LIMIT :limit;

-- name: task_attempts
SELECT item, run, started_at, ended_at, outcome, counted, exit_code, error FROM attempt WHERE item = :item ORDER BY run;

-- name: change_task_state
UPDATE item SET state = :state, held_by = NULL, asked = NULL, error = :error, closed_at = :closed_at,
    not_before = NULL, attempts = CASE WHEN :again THEN 0 ELSE attempts END
WHERE id = :item;

-- name: free_dependents
UPDATE item SET waits_for = waits_for - 1
WHERE waits_for > 0 AND id IN (SELECT item FROM dependency WHERE needs = :item);

-- name: block_dependents
UPDATE item SET state = 'blocked', error = :error, asked = NULL
WHERE state IN ('pending', 'failed') AND id IN (SELECT item FROM dependency WHERE needs = :item);

-- name: unblock_dependents
UPDATE item SET state = 'pending', error = NULL
WHERE state = 'blocked' AND waits_for > 0 AND id IN (SELECT item FROM dependency WHERE needs = :item)
    AND NOT EXISTS (SELECT 1 FROM dependency d JOIN item other ON other.id = d.needs
        WHERE d.item = item.id AND d.needs <> :item AND other.state IN ('cancelled', 'dead_letter'));
