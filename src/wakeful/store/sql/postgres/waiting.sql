-- name: tasks_ahead
SELECT i.id, coalesce(
    (SELECT min(o.id) FROM item o WHERE o.key = i.key AND o.key IS NOT NULL AND o.closed_at IS NULL AND o.id < i.id),
    (SELECT h.id FROM item h WHERE h.key = i.key AND h.key IS NOT NULL AND h.held_by IS NOT NULL AND h.id <> i.id),
    -- Taken from its run, and not ended yet.
    (SELECT max(s.item) FROM attempt s JOIN item o ON o.id = s.item
        WHERE s.stop_by IS NOT NULL AND s.ended_at IS NULL AND o.key = i.key AND o.id <> i.id)) AS ahead
FROM json_array_elements_text(:tasks::json) AS j (value) JOIN item i ON i.id = j.value::bigint WHERE i.key IS NOT NULL ORDER BY i.id;

-- name: agents_of_role
SELECT a.name, a.address, a.version, a.declaration, a.overrides, a.enabled, a.removed_at
FROM role o JOIN agent a ON a.name = o.agent WHERE o.role = :role AND a.removed_at IS NULL ORDER BY a.name;

-- name: untaken_targets
-- From target to target, however long their queues.
WITH RECURSIVE targets (target) AS (
    SELECT min(target) FROM item WHERE kind = 'task' AND closed_at IS NULL
    UNION ALL
    SELECT (SELECT min(i.target) FROM item i WHERE i.target > targets.target AND i.kind = 'task' AND i.closed_at IS NULL)
    FROM targets WHERE targets.target IS NOT NULL
)
SELECT t.target, (SELECT count(*) FROM item i WHERE i.target = t.target AND i.kind = 'task' AND i.closed_at IS NULL) AS tasks
FROM targets t
WHERE t.target IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM role o WHERE substr(t.target, 1, 5) = 'role:' AND o.role = substr(t.target, 6))
    AND NOT EXISTS (SELECT 1 FROM agent a WHERE a.name = t.target AND a.removed_at IS NULL AND a.enabled = 1)
    AND NOT EXISTS (SELECT 1 FROM agent a WHERE a.address = t.target AND a.removed_at IS NULL AND a.enabled = 1)
ORDER BY t.target LIMIT 100;
