-- name: put_dependency
INSERT INTO dependency (item, needs)
SELECT r.item, r.needs FROM json_to_recordset(:rows::json) AS r (item bigint, needs bigint);

-- name: needed_tasks
-- None of them ends between this look and our commit: who waits for it is then seen by its end, or sees it.
SELECT id, state FROM item WHERE id = ANY (ARRAY(SELECT json_array_elements_text(:tasks::json)::bigint)) AND kind = 'task'
ORDER BY id FOR SHARE;

-- name: count_needs
UPDATE item SET waits_for = (SELECT count(*) FROM dependency d JOIN item n ON n.id = d.needs
    WHERE d.item = item.id AND n.state <> 'completed')
FROM json_to_recordset(:rows::json) AS r (item bigint) WHERE item.id = r.item AND item.closed_at IS NULL;

-- name: first_ready
-- The heads of all queues together, as far as the window goes; `open` says whether one may be offered.
SELECT i.id, i.agent, i.role, i.place, i.created_at, i.source, i.by_run, i.depth,
    (i.key IS NULL OR NOT EXISTS
        (SELECT 1 FROM item older WHERE older.key = i.key AND older.closed_at IS NULL AND older.id < i.id)
        AND NOT EXISTS (SELECT 1 FROM item held WHERE held.key = i.key AND held.key IS NOT NULL AND held.held_by IS NOT NULL)
        -- Taken from its run, and not ended yet.
        AND NOT EXISTS (SELECT 1 FROM attempt s JOIN item left_over ON left_over.id = s.item
            WHERE s.stop_by IS NOT NULL AND s.ended_at IS NULL AND left_over.key = i.key))
    AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || i.source)
    AND NOT EXISTS (SELECT 1 FROM wake w WHERE w.state = 'waiting' AND w.cause = 'task'
        AND coalesce(w.agent, 'role:' || w.role) = i.target
        AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || w.source))
    AND (EXISTS (SELECT 1 FROM role o WHERE i.agent IS NULL AND o.role = i.role
            AND NOT EXISTS (SELECT 1 FROM run b WHERE b.agent = o.agent AND b.ended_at IS NULL))
        OR EXISTS (SELECT 1 FROM agent a WHERE a.name = i.agent AND a.removed_at IS NULL AND a.enabled = 1
            AND NOT EXISTS (SELECT 1 FROM run b WHERE b.agent = a.name AND b.ended_at IS NULL))
        OR EXISTS (SELECT 1 FROM agent a WHERE a.address = i.agent AND a.removed_at IS NULL AND a.enabled = 1
            AND NOT EXISTS (SELECT 1 FROM run b WHERE b.agent = a.name AND b.ended_at IS NULL))) AS open
FROM item i
WHERE i.kind = 'task' AND i.state IN ('pending', 'failed') AND i.waits_for = 0 AND i.behind = 0 AND i.asked IS NULL AND i.not_before IS NULL
ORDER BY i.place, i.id LIMIT :window;

-- name: first_later
-- As above. What has fallen due stands at its place with the others at the next `ripen_tasks`; till then as far as one sees.
SELECT i.id, i.agent, i.role, i.place, i.created_at, i.source, i.by_run, i.depth,
    (i.key IS NULL OR NOT EXISTS
        (SELECT 1 FROM item older WHERE older.key = i.key AND older.closed_at IS NULL AND older.id < i.id)
        AND NOT EXISTS (SELECT 1 FROM item held WHERE held.key = i.key AND held.key IS NOT NULL AND held.held_by IS NOT NULL)
        -- Taken from its run, and not ended yet.
        AND NOT EXISTS (SELECT 1 FROM attempt s JOIN item left_over ON left_over.id = s.item
            WHERE s.stop_by IS NOT NULL AND s.ended_at IS NULL AND left_over.key = i.key))
    AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || i.source)
    AND NOT EXISTS (SELECT 1 FROM wake w WHERE w.state = 'waiting' AND w.cause = 'task'
        AND coalesce(w.agent, 'role:' || w.role) = i.target
        AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || w.source))
    AND (EXISTS (SELECT 1 FROM role o WHERE i.agent IS NULL AND o.role = i.role
            AND NOT EXISTS (SELECT 1 FROM run b WHERE b.agent = o.agent AND b.ended_at IS NULL))
        OR EXISTS (SELECT 1 FROM agent a WHERE a.name = i.agent AND a.removed_at IS NULL AND a.enabled = 1
            AND NOT EXISTS (SELECT 1 FROM run b WHERE b.agent = a.name AND b.ended_at IS NULL))
        OR EXISTS (SELECT 1 FROM agent a WHERE a.address = i.agent AND a.removed_at IS NULL AND a.enabled = 1
            AND NOT EXISTS (SELECT 1 FROM run b WHERE b.agent = a.name AND b.ended_at IS NULL))) AS open
FROM (SELECT * FROM (SELECT t.id, t.agent, t.role, t.target, t.key, t.place, t.created_at, t.source, t.by_run, t.depth FROM item t
    WHERE t.kind = 'task' AND t.state IN ('pending', 'failed') AND t.waits_for = 0 AND t.behind = 0 AND t.asked IS NULL AND t.not_before IS NOT NULL AND t.not_before <= :now
    ORDER BY t.not_before, t.id LIMIT :sight) AS due ORDER BY place, id LIMIT :window) AS i
ORDER BY i.place, i.id;

-- name: ready_targets
-- From target to target, however long their queues; but those only for whom nobody waits yet, and somebody is idle.
WITH RECURSIVE targets (target) AS (
    SELECT min(target) FROM item WHERE kind = 'task' AND state IN ('pending', 'failed') AND waits_for = 0 AND behind = 0 AND asked IS NULL
        AND not_before IS NULL
    UNION ALL
    SELECT (SELECT min(i.target) FROM item i WHERE i.target > targets.target AND i.kind = 'task' AND state IN ('pending', 'failed') AND waits_for = 0 AND behind = 0 AND asked IS NULL
        AND not_before IS NULL)
    FROM targets WHERE targets.target IS NOT NULL
)
SELECT t.target FROM targets t
WHERE t.target IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM wake w WHERE w.state = 'waiting' AND w.cause = 'task'
        AND coalesce(w.agent, 'role:' || w.role) = t.target
        AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || w.source))
    AND (EXISTS (SELECT 1 FROM role o WHERE substr(t.target, 1, 5) = 'role:' AND o.role = substr(t.target, 6)
            AND NOT EXISTS (SELECT 1 FROM run b WHERE b.agent = o.agent AND b.ended_at IS NULL))
        OR EXISTS (SELECT 1 FROM agent a WHERE a.name = t.target AND a.removed_at IS NULL AND a.enabled = 1
            AND NOT EXISTS (SELECT 1 FROM run b WHERE b.agent = a.name AND b.ended_at IS NULL))
        OR EXISTS (SELECT 1 FROM agent a WHERE a.address = t.target AND a.removed_at IS NULL AND a.enabled = 1
            AND NOT EXISTS (SELECT 1 FROM run b WHERE b.agent = a.name AND b.ended_at IS NULL)));

-- name: later_targets
-- From target to target, however long their queues; but those only for whom nobody waits yet, and somebody is idle.
WITH RECURSIVE targets (target) AS (
    SELECT min(target) FROM item WHERE kind = 'task' AND state IN ('pending', 'failed') AND waits_for = 0 AND behind = 0 AND asked IS NULL
        AND not_before IS NOT NULL
    UNION ALL
    SELECT (SELECT min(i.target) FROM item i WHERE i.target > targets.target AND i.kind = 'task' AND state IN ('pending', 'failed') AND waits_for = 0 AND behind = 0 AND asked IS NULL
        AND not_before IS NOT NULL)
    FROM targets WHERE targets.target IS NOT NULL
)
SELECT t.target FROM targets t
WHERE t.target IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM wake w WHERE w.state = 'waiting' AND w.cause = 'task'
        AND coalesce(w.agent, 'role:' || w.role) = t.target
        AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || w.source))
    AND (EXISTS (SELECT 1 FROM role o WHERE substr(t.target, 1, 5) = 'role:' AND o.role = substr(t.target, 6)
            AND NOT EXISTS (SELECT 1 FROM run b WHERE b.agent = o.agent AND b.ended_at IS NULL))
        OR EXISTS (SELECT 1 FROM agent a WHERE a.name = t.target AND a.removed_at IS NULL AND a.enabled = 1
            AND NOT EXISTS (SELECT 1 FROM run b WHERE b.agent = a.name AND b.ended_at IS NULL))
        OR EXISTS (SELECT 1 FROM agent a WHERE a.address = t.target AND a.removed_at IS NULL AND a.enabled = 1
            AND NOT EXISTS (SELECT 1 FROM run b WHERE b.agent = a.name AND b.ended_at IS NULL)));

-- name: idle_in_role
-- How many of those who have it are free, as far as it matters.
SELECT count(*) AS idle FROM (SELECT 1 FROM role o WHERE o.role = :role
    AND NOT EXISTS (SELECT 1 FROM run b WHERE b.agent = o.agent AND b.ended_at IS NULL) LIMIT :limit) AS found;

-- name: ready_tasks
-- As a range, of which the target is what comes first in the order: else all queues together may be walked for one.
SELECT i.id, i.agent, i.role, i.place, i.created_at, i.source, i.by_run, i.depth FROM item i
WHERE i.target >= :target AND i.target <= :target AND i.kind = 'task' AND i.state IN ('pending', 'failed') AND i.waits_for = 0 AND i.behind = 0
    AND i.asked IS NULL AND i.not_before IS NULL
    AND (i.key IS NULL OR NOT EXISTS
        (SELECT 1 FROM item older WHERE older.key = i.key AND older.closed_at IS NULL AND older.id < i.id)
        AND NOT EXISTS (SELECT 1 FROM item held WHERE held.key = i.key AND held.key IS NOT NULL AND held.held_by IS NOT NULL)
        -- Taken from its run, and not ended yet.
        AND NOT EXISTS (SELECT 1 FROM attempt s JOIN item left_over ON left_over.id = s.item
            WHERE s.stop_by IS NOT NULL AND s.ended_at IS NULL AND left_over.key = i.key))
    AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || i.source)
ORDER BY i.target, i.place, i.id LIMIT :limit;

-- name: later_tasks
SELECT i.id, i.agent, i.role, i.place, i.created_at, i.source, i.by_run, i.depth
FROM (SELECT t.id, t.agent, t.role, t.target, t.key, t.place, t.created_at, t.source, t.by_run, t.depth FROM item t
    WHERE t.target >= :target AND t.target <= :target AND t.kind = 'task' AND t.state IN ('pending', 'failed') AND t.waits_for = 0 AND t.behind = 0
    AND t.asked IS NULL AND t.not_before IS NOT NULL AND t.not_before <= :now
    ORDER BY t.target, t.not_before, t.id LIMIT :sight) AS i
WHERE (i.key IS NULL OR NOT EXISTS
        (SELECT 1 FROM item older WHERE older.key = i.key AND older.closed_at IS NULL AND older.id < i.id)
        AND NOT EXISTS (SELECT 1 FROM item held WHERE held.key = i.key AND held.key IS NOT NULL AND held.held_by IS NOT NULL)
        -- Taken from its run, and not ended yet.
        AND NOT EXISTS (SELECT 1 FROM attempt s JOIN item left_over ON left_over.id = s.item
            WHERE s.stop_by IS NOT NULL AND s.ended_at IS NULL AND left_over.key = i.key))
    AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || i.source)
ORDER BY i.place, i.id LIMIT :limit;

-- name: ripen_tasks
-- From now on their place decides, as that of all others does.
UPDATE item SET not_before = NULL WHERE id = ANY (ARRAY(SELECT i.id FROM item i
    WHERE i.kind = 'task' AND i.state IN ('pending', 'failed') AND i.waits_for = 0 AND i.behind = 0 AND i.asked IS NULL AND i.not_before IS NOT NULL AND i.not_before <= :now
    ORDER BY i.not_before, i.id LIMIT :limit FOR UPDATE SKIP LOCKED));

-- name: task_attempts
SELECT item, run, started_at, ended_at, outcome, counted, exit_code, error, output FROM attempt WHERE item = :item ORDER BY run;

-- name: attempts_of
SELECT item, run, started_at, ended_at, outcome, counted, exit_code, error, output FROM attempt
WHERE item = ANY (ARRAY(SELECT json_array_elements_text(:tasks::json)::bigint)) ORDER BY item, run;

-- name: end_task
UPDATE item SET state = :state, held_by = NULL, asked = NULL, error = :error, result = :result,
    not_before = NULL, closed_at = :now
WHERE id = :item;

-- name: retry_task
-- What it waits for is counted anew: something may have been removed. It stands in line from now on.
UPDATE item SET place = :place, state = 'pending', held_by = NULL, asked = NULL, error = NULL, closed_at = NULL, not_before = NULL, attempts = 0,
    behind = CASE WHEN EXISTS (SELECT 1 FROM item o WHERE o.key = item.key AND o.key IS NOT NULL AND o.closed_at IS NULL
        AND o.id < item.id) THEN 1 ELSE 0 END,
    waits_for = (SELECT count(*) FROM dependency d JOIN item n ON n.id = d.needs WHERE d.item = item.id AND n.state <> 'completed')
WHERE id = :item;

-- name: attempt_under_way
SELECT t.run, r.state, r.epoch FROM attempt t JOIN run r ON r.id = t.run WHERE t.item = :item AND t.ended_at IS NULL
ORDER BY t.run DESC LIMIT 1;

-- name: stop_attempt
UPDATE attempt SET stop_by = :by WHERE item = :item AND run = :run AND ended_at IS NULL AND stop_by IS NULL;

-- name: forget_attempt
DELETE FROM attempt WHERE item = :item AND run = :run;

-- name: attempts_of_run
SELECT item FROM attempt WHERE run = :run LIMIT 1;

-- name: dependents
SELECT d.needs, d.item, i.state FROM json_array_elements_text(:tasks::json) AS j (value)
JOIN dependency d ON d.needs = j.value::bigint JOIN item i ON i.id = d.item ORDER BY d.needs, d.item;

-- name: free_dependent
-- More than one of those that it waits for may have ended at once. It stands in line from when the last one has.
UPDATE item SET waits_for = greatest(waits_for - r.ended, 0),
    place = CASE WHEN waits_for <= r.ended THEN greatest(place, r.now - priority * r.rank, not_before - priority * r.rank) ELSE place END
FROM (SELECT item, count(*)::int AS ended, max(now) AS now, max(rank) AS rank
    FROM json_to_recordset(:rows::json) AS r (item bigint, now bigint, rank bigint) GROUP BY item) AS r
WHERE item.id = r.item;

-- name: block_task
UPDATE item SET state = 'blocked', error = r.error, asked = NULL
FROM json_to_recordset(:rows::json) AS r (item bigint, error text) WHERE item.id = r.item AND item.state IN ('pending', 'failed');

-- name: retell_block
UPDATE item SET error = r.error FROM json_to_recordset(:rows::json) AS r (item bigint, was text, error text)
WHERE item.id = r.item AND item.state = 'blocked' AND item.error LIKE r.was;

-- name: to_unblock
-- Of these what nothing is in the way of any more; but not what waits for something that was removed.
SELECT i.id FROM item i WHERE i.id = ANY (ARRAY(SELECT json_array_elements_text(:tasks::json)::bigint)) AND i.state = 'blocked'
    AND i.error LIKE :needs AND i.error NOT LIKE :removed
    AND NOT EXISTS (SELECT 1 FROM dependency d JOIN item n ON n.id = d.needs
        WHERE d.item = i.id AND n.state IN ('cancelled', 'dead_letter', 'blocked'))
ORDER BY i.id;

-- name: unblock_task
-- What it waits for is counted anew: something may have been removed. It stands in line from now on.
UPDATE item SET state = 'pending', error = NULL,
    place = greatest(place, r.now - priority * r.rank, not_before - priority * r.rank),
    waits_for = (SELECT count(*) FROM dependency d JOIN item n ON n.id = d.needs WHERE d.item = item.id AND n.state <> 'completed')
FROM json_to_recordset(:rows::json) AS r (item bigint, now bigint, rank bigint) WHERE item.id = r.item;

-- name: keyed_task
SELECT id FROM item WHERE dedupe = :dedupe AND kind = 'task';

-- name: needed_by
SELECT i.id, i.state FROM dependency d JOIN item i ON i.id = d.needs WHERE d.item = :item ORDER BY i.id;

-- name: depth_of_run
-- Of its wake, or of the deepest task that it is at or took.
SELECT greatest(w.depth, coalesce((SELECT max(i.depth) FROM attempt a JOIN item i ON i.id = a.item WHERE a.run = r.id), 0)) AS depth
FROM run r JOIN wake w ON w.id = r.wake WHERE r.id = :run;

-- name: free_keys
-- Who is now the first of its key.
UPDATE item SET behind = 0 WHERE behind = 1 AND id = ANY (ARRAY(SELECT (SELECT min(o.id) FROM item o
    WHERE o.key = r.key::varchar AND o.key IS NOT NULL AND o.closed_at IS NULL)
    FROM json_to_recordset(:rows::json) AS r (key text)));

-- name: step_behind
-- One that is older is open again.
UPDATE item SET behind = 1 WHERE held_by IS NULL AND id = (SELECT min(o.id) FROM item o
    WHERE o.key = :key AND o.key IS NOT NULL AND o.closed_at IS NULL AND o.id > :item);
