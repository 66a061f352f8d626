-- name: put_step
INSERT INTO step (subject, name, result, saved_at) VALUES (:subject, :name, :result, :now)
ON CONFLICT (subject, name) DO UPDATE SET result = :result, saved_at = :now WHERE result IS NULL;

-- name: step_rows
SELECT name, result FROM step WHERE subject = :subject ORDER BY saved_at, name;

-- name: steps_of
-- The newest first, and of each result its beginning: it may be long.
SELECT s.subject, s.name, substr(s.result, 1, :longest) AS result, s.saved_at FROM json_each(:subjects) j CROSS JOIN step s ON s.subject = j.value
ORDER BY s.saved_at DESC, s.name DESC LIMIT :limit;

-- name: tried_in
SELECT item AS id FROM attempt WHERE run = :run ORDER BY item;

-- name: forget_steps
DELETE FROM step WHERE subject = :subject;

-- name: task_held
SELECT id FROM item WHERE id = :item AND held_by = :run AND kind = 'task';

-- name: forget_task_steps
DELETE FROM step WHERE subject IN (SELECT 'task:' || value FROM json_each(:tasks));
