-- name: put_step
INSERT INTO step (subject, name, result, saved_at) VALUES (:subject, :name, :result, :now)
ON CONFLICT (subject, name) DO UPDATE SET result = :result, saved_at = :now WHERE result IS NULL;

-- name: step_rows
SELECT name, result FROM step WHERE subject = :subject ORDER BY saved_at, name;

-- name: forget_steps
DELETE FROM step WHERE subject = :subject;

-- name: task_held
SELECT id FROM item WHERE id = :item AND held_by = :run AND kind = 'task';

-- name: forget_task_steps
DELETE FROM step WHERE subject IN (SELECT 'task:' || value FROM json_each(:tasks));
