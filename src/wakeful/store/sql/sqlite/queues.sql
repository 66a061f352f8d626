-- name: list_tasks
-- Whatever they are; most of what is past went well.
SELECT id FROM item
WHERE kind = 'task' AND id > :after AND id < :before AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:agents IS NULL OR agent IN (SELECT value FROM json_each(:agents))) AND (:role IS NULL OR role = :role)
    AND (:sender IS NULL OR sender = :sender) AND (:key IS NULL OR key = :key) AND (:source IS NULL OR source = :source)
    AND (:priority IS NULL OR priority = :priority)
    AND (:tag IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) t WHERE t.value = :tag))
    AND (:text IS NULL OR instr(lower(subject || char(10) || coalesce(error, '')), lower(:text)) > 0)
ORDER BY id LIMIT :limit;

-- name: latest_tasks
SELECT id FROM item
WHERE kind = 'task' AND id > :after AND id < :before AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:agents IS NULL OR agent IN (SELECT value FROM json_each(:agents))) AND (:role IS NULL OR role = :role)
    AND (:sender IS NULL OR sender = :sender) AND (:key IS NULL OR key = :key) AND (:source IS NULL OR source = :source)
    AND (:priority IS NULL OR priority = :priority)
    AND (:tag IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) t WHERE t.value = :tag))
    AND (:text IS NULL OR instr(lower(subject || char(10) || coalesce(error, '')), lower(:text)) > 0)
ORDER BY id DESC LIMIT :limit;

-- name: count_tasks
SELECT state, count(*) AS tasks FROM item
WHERE kind = 'task' AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:agents IS NULL OR agent IN (SELECT value FROM json_each(:agents))) AND (:role IS NULL OR role = :role)
    AND (:sender IS NULL OR sender = :sender) AND (:key IS NULL OR key = :key) AND (:source IS NULL OR source = :source)
    AND (:priority IS NULL OR priority = :priority)
    AND (:tag IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) t WHERE t.value = :tag))
    AND (:text IS NULL OR instr(lower(subject || char(10) || coalesce(error, '')), lower(:text)) > 0)
GROUP BY state;

-- name: count_all_tasks
-- By the indexes alone: what is in none of them is what is left of all.
WITH aside AS (SELECT state, count(*) AS tasks FROM item INDEXED BY item_aside
        WHERE kind = 'task' AND (state IN ('dead_letter', 'blocked') OR state IN ('failed', 'cancelled')) GROUP BY state),
    held AS (SELECT count(*) AS tasks FROM item INDEXED BY item_held WHERE held_by IS NOT NULL AND kind = 'task'),
    open AS (SELECT count(*) AS tasks FROM item INDEXED BY item_queue WHERE kind = 'task' AND closed_at IS NULL),
    closed AS (SELECT (SELECT count(*) FROM item INDEXED BY item_closed WHERE closed_at IS NOT NULL)
        - (SELECT count(*) FROM item INDEXED BY item_past WHERE kind = 'message' AND closed_at IS NOT NULL) AS tasks)
SELECT state, tasks FROM aside
UNION ALL SELECT 'in_progress', tasks FROM held
UNION ALL SELECT 'pending', open.tasks - held.tasks - (SELECT coalesce(sum(tasks), 0) FROM aside WHERE state IN ('failed', 'blocked'))
    FROM open, held
UNION ALL SELECT 'completed', closed.tasks - (SELECT coalesce(sum(tasks), 0) FROM aside WHERE state IN ('dead_letter', 'cancelled'))
    FROM closed;

-- name: aside_tasks
-- What did not go well, by one state; it is little, however much went well.
SELECT id FROM item INDEXED BY item_aside
WHERE kind = 'task' AND (state IN ('dead_letter', 'blocked') OR state IN ('failed', 'cancelled')) AND state = :state AND id > :after AND id < :before
    AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:agents IS NULL OR agent IN (SELECT value FROM json_each(:agents))) AND (:role IS NULL OR role = :role)
    AND (:sender IS NULL OR sender = :sender) AND (:key IS NULL OR key = :key) AND (:source IS NULL OR source = :source)
    AND (:priority IS NULL OR priority = :priority)
    AND (:tag IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) t WHERE t.value = :tag))
    AND (:text IS NULL OR instr(lower(subject || char(10) || coalesce(error, '')), lower(:text)) > 0)
ORDER BY id LIMIT :limit;

-- name: latest_aside_tasks
SELECT id FROM item INDEXED BY item_aside
WHERE kind = 'task' AND (state IN ('dead_letter', 'blocked') OR state IN ('failed', 'cancelled')) AND state = :state AND id > :after AND id < :before
    AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:agents IS NULL OR agent IN (SELECT value FROM json_each(:agents))) AND (:role IS NULL OR role = :role)
    AND (:sender IS NULL OR sender = :sender) AND (:key IS NULL OR key = :key) AND (:source IS NULL OR source = :source)
    AND (:priority IS NULL OR priority = :priority)
    AND (:tag IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) t WHERE t.value = :tag))
    AND (:text IS NULL OR instr(lower(subject || char(10) || coalesce(error, '')), lower(:text)) > 0)
ORDER BY id DESC LIMIT :limit;

-- name: count_aside_tasks
SELECT state, count(*) AS tasks FROM item INDEXED BY item_aside
WHERE kind = 'task' AND (state IN ('dead_letter', 'blocked') OR state IN ('failed', 'cancelled')) AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:agents IS NULL OR agent IN (SELECT value FROM json_each(:agents))) AND (:role IS NULL OR role = :role)
    AND (:sender IS NULL OR sender = :sender) AND (:key IS NULL OR key = :key) AND (:source IS NULL OR source = :source)
    AND (:priority IS NULL OR priority = :priority)
    AND (:tag IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) t WHERE t.value = :tag))
    AND (:text IS NULL OR instr(lower(subject || char(10) || coalesce(error, '')), lower(:text)) > 0)
GROUP BY state;

-- name: queued_tasks
-- What is open in one queue.
SELECT id FROM item INDEXED BY item_queue
WHERE kind = 'task' AND closed_at IS NULL AND target = :target AND id > :after AND id < :before
    AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:agents IS NULL OR agent IN (SELECT value FROM json_each(:agents))) AND (:role IS NULL OR role = :role)
    AND (:sender IS NULL OR sender = :sender) AND (:key IS NULL OR key = :key) AND (:source IS NULL OR source = :source)
    AND (:priority IS NULL OR priority = :priority)
    AND (:tag IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) t WHERE t.value = :tag))
    AND (:text IS NULL OR instr(lower(subject || char(10) || coalesce(error, '')), lower(:text)) > 0)
ORDER BY id LIMIT :limit;

-- name: latest_queued_tasks
SELECT id FROM item INDEXED BY item_queue
WHERE kind = 'task' AND closed_at IS NULL AND target = :target AND id > :after AND id < :before
    AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:agents IS NULL OR agent IN (SELECT value FROM json_each(:agents))) AND (:role IS NULL OR role = :role)
    AND (:sender IS NULL OR sender = :sender) AND (:key IS NULL OR key = :key) AND (:source IS NULL OR source = :source)
    AND (:priority IS NULL OR priority = :priority)
    AND (:tag IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) t WHERE t.value = :tag))
    AND (:text IS NULL OR instr(lower(subject || char(10) || coalesce(error, '')), lower(:text)) > 0)
ORDER BY id DESC LIMIT :limit;

-- name: open_tasks
-- What is open, in whichever queue.
SELECT id FROM item INDEXED BY item_queue
WHERE kind = 'task' AND closed_at IS NULL AND id > :after AND id < :before AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:agents IS NULL OR agent IN (SELECT value FROM json_each(:agents))) AND (:role IS NULL OR role = :role)
    AND (:sender IS NULL OR sender = :sender) AND (:key IS NULL OR key = :key) AND (:source IS NULL OR source = :source)
    AND (:priority IS NULL OR priority = :priority)
    AND (:tag IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) t WHERE t.value = :tag))
    AND (:text IS NULL OR instr(lower(subject || char(10) || coalesce(error, '')), lower(:text)) > 0)
ORDER BY id LIMIT :limit;

-- name: latest_open_tasks
SELECT id FROM item INDEXED BY item_queue
WHERE kind = 'task' AND closed_at IS NULL AND id > :after AND id < :before AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:agents IS NULL OR agent IN (SELECT value FROM json_each(:agents))) AND (:role IS NULL OR role = :role)
    AND (:sender IS NULL OR sender = :sender) AND (:key IS NULL OR key = :key) AND (:source IS NULL OR source = :source)
    AND (:priority IS NULL OR priority = :priority)
    AND (:tag IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) t WHERE t.value = :tag))
    AND (:text IS NULL OR instr(lower(subject || char(10) || coalesce(error, '')), lower(:text)) > 0)
ORDER BY id DESC LIMIT :limit;

-- name: count_open_tasks
SELECT state, count(*) AS tasks FROM item INDEXED BY item_queue
WHERE kind = 'task' AND closed_at IS NULL AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:agents IS NULL OR agent IN (SELECT value FROM json_each(:agents))) AND (:role IS NULL OR role = :role)
    AND (:sender IS NULL OR sender = :sender) AND (:key IS NULL OR key = :key) AND (:source IS NULL OR source = :source)
    AND (:priority IS NULL OR priority = :priority)
    AND (:tag IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) t WHERE t.value = :tag))
    AND (:text IS NULL OR instr(lower(subject || char(10) || coalesce(error, '')), lower(:text)) > 0)
GROUP BY state;

-- name: held_tasks
-- What runs are at; there are no more of them than their shifts have room for.
SELECT id FROM item INDEXED BY item_held
WHERE kind = 'task' AND held_by IS NOT NULL AND id > :after AND id < :before AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
    AND (:agents IS NULL OR agent IN (SELECT value FROM json_each(:agents))) AND (:role IS NULL OR role = :role)
    AND (:sender IS NULL OR sender = :sender) AND (:key IS NULL OR key = :key) AND (:source IS NULL OR source = :source)
    AND (:priority IS NULL OR priority = :priority)
    AND (:tag IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) t WHERE t.value = :tag))
    AND (:text IS NULL OR instr(lower(subject || char(10) || coalesce(error, '')), lower(:text)) > 0);
