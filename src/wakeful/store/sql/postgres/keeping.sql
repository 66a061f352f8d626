-- name: old_items
-- What is closed, unless its key still guards against a repetition or something open depends on it. What is dead stays until
-- somebody has seen it, and replays or discards it.
SELECT i.id FROM item i
WHERE i.closed_at IS NOT NULL AND i.closed_at < :before AND (i.dedupe IS NULL OR i.closed_at < :keys_before)
    AND i.state <> 'dead_letter'
    AND NOT EXISTS (SELECT 1 FROM dependency d JOIN item o ON o.id = d.item WHERE d.needs = i.id AND o.closed_at IS NULL)
ORDER BY i.closed_at, i.id LIMIT :limit;

-- name: forget_dependencies
DELETE FROM dependency WHERE item = :item;

-- name: forget_dependents
DELETE FROM dependency WHERE needs = :item;

-- name: forget_showings
DELETE FROM run_item WHERE item = :item;

-- name: forget_tries
DELETE FROM attempt WHERE item = :item;

-- name: forget_item
DELETE FROM item WHERE id = :item;

-- name: forget_keys
UPDATE item SET dedupe = NULL WHERE id = ANY (ARRAY(SELECT id FROM item
    WHERE closed_at IS NOT NULL AND dedupe IS NOT NULL AND closed_at < :keys_before ORDER BY closed_at LIMIT :limit));

-- name: old_runs
-- What has ended, unless it is the last of its agent or of what its cooldown counts from, a try at a task that we
-- still have, the author of something open, or the last that saw it.
SELECT r.id, r.agent FROM run r
WHERE r.ended_at IS NOT NULL AND r.ended_at < :before
    AND (r.state <> 'ended' OR EXISTS
        (SELECT 1 FROM run n WHERE n.agent = r.agent AND n.id > r.id AND n.state = 'ended'))
    AND (r.charged = 0 OR r.state = 'void' OR EXISTS
        (SELECT 1 FROM run n WHERE n.address = r.address AND n.charged = 1 AND n.state <> 'void' AND n.id > r.id))
    AND NOT EXISTS (SELECT 1 FROM attempt a WHERE a.run = r.id)
    AND NOT EXISTS (SELECT 1 FROM item i WHERE i.by_run = r.id AND i.by_run IS NOT NULL AND i.closed_at IS NULL)
    AND NOT EXISTS (SELECT 1 FROM run_item s JOIN item i ON i.id = s.item WHERE s.run = r.id AND i.closed_at IS NULL
        AND NOT EXISTS (SELECT 1 FROM run_item n WHERE n.item = s.item AND n.run > s.run))
ORDER BY r.ended_at, r.id LIMIT :limit;

-- name: old_output
-- From the oldest runs on, of which few are open.
SELECT r.id AS run FROM (SELECT DISTINCT o.run FROM output o WHERE o.run > 0 ORDER BY o.run LIMIT :limit) AS kept JOIN run r ON r.id = kept.run
WHERE r.ended_at IS NOT NULL AND r.ended_at < :before ORDER BY r.id;

-- name: forget_output
DELETE FROM output WHERE run = :run;

-- name: forget_run
DELETE FROM run WHERE id = :run;

-- name: old_wakes
-- What was decided, unless a run or another wake rests on it, it is part of one that waits, or it is a one-off that is
-- still declared.
SELECT w.id FROM wake w
WHERE w.state <> 'waiting' AND w.decided_at < :before
    AND NOT EXISTS (SELECT 1 FROM run r WHERE r.wake = w.id)
    AND NOT EXISTS (SELECT 1 FROM wake j WHERE j.joined = w.id)
    AND NOT EXISTS (SELECT 1 FROM wake t WHERE t.id = w.joined AND t.state = 'waiting')
    AND (w.slot = '' OR NOT EXISTS
        (SELECT 1 FROM agent a WHERE a.name = w.agent AND a.removed_at IS NULL AND strpos(a.declaration, w.slot) > 0))
ORDER BY w.decided_at, w.id LIMIT :limit;

-- name: forget_wake
DELETE FROM wake WHERE id = :wake;

-- name: old_events
-- Of each agent the last word on how it was declared and on where it stood stays, and of each pause the one that began
-- it, until it is over.
SELECT e.id, e.kind, e.agent FROM event e
WHERE e.id <= :last AND e.at < :before
    AND (e.kind NOT IN ('declared', 'set', 'removed', 'paused', 'ended')
        OR (e.kind = 'ended' AND EXISTS
            (SELECT 1 FROM event n WHERE n.agent = e.agent AND n.id > e.id AND n.id <= :last AND n.at < :before
                AND n.kind = 'ended'))
        OR (e.kind IN ('declared', 'set') AND EXISTS
            (SELECT 1 FROM event n WHERE n.agent IS NOT DISTINCT FROM e.agent AND n.id > e.id AND n.id <= :last AND n.at < :before
                AND n.kind IN ('declared', 'removed', 'set', 'paused', 'resumed', 'stopped', 'task_changed')
                AND n.kind IN ('declared', 'set')))
        OR (e.kind = 'removed' AND EXISTS
            (SELECT 1 FROM event n WHERE n.agent IS NOT DISTINCT FROM e.agent AND n.id > e.id AND n.id <= :last AND n.at < :before
                AND n.kind IN ('declared', 'removed', 'set', 'paused', 'resumed', 'stopped', 'task_changed')
                AND n.kind IN ('declared', 'removed')))
        OR (e.kind = 'paused' AND EXISTS
            (SELECT 1 FROM event n WHERE n.agent IS NOT DISTINCT FROM e.agent AND n.id > e.id AND n.id <= :last AND n.at < :before
                AND n.kind IN ('declared', 'removed', 'set', 'paused', 'resumed', 'stopped', 'task_changed')
                AND n.kind IN ('paused', 'resumed')
                AND n.fields::jsonb ->> 'scope' = e.fields::jsonb ->> 'scope'
                AND n.fields::jsonb ->> 'owner' = e.fields::jsonb ->> 'owner')))
ORDER BY e.id LIMIT :limit;

-- name: forget_event
DELETE FROM event WHERE id = :event;

-- name: forget_reckonings
-- A stretch of time in which nothing is left needs no beginning.
DELETE FROM reckoning WHERE event <= :last AND NOT EXISTS (SELECT 1 FROM event e WHERE e.id >= reckoning.event
    AND e.id < coalesce((SELECT min(n.event) FROM reckoning n WHERE n.event > reckoning.event), 9223372036854775807));

-- name: forget_declarations
-- Versions grow with the ids of the runs: the oldest run that is left rests on the oldest declaration that is needed.
DELETE FROM declaration WHERE agent = :agent AND declared_at < :before
    AND version < (SELECT version FROM agent WHERE name = :agent)
    AND version < coalesce((SELECT version FROM run WHERE agent = :agent ORDER BY id LIMIT 1), version + 1);

-- name: forget_totals
DELETE FROM total WHERE (scope, day) IN (SELECT scope, day FROM total WHERE day < :day LIMIT :limit);

-- name: forget_nodes
-- Who left, or fell silent, and has nothing.
DELETE FROM node WHERE coalesce(left_at, seen_at + lease) < :before
    AND NOT EXISTS (SELECT 1 FROM run r WHERE r.node = node.name AND r.ended_at IS NULL)
    AND NOT EXISTS (SELECT 1 FROM source s WHERE s.node = node.name);
