-- name: put_step
INSERT INTO step (subject, name, result, saved_at) VALUES (:subject, :name, :result, :now)
ON CONFLICT (subject, name) DO UPDATE SET result = :result, saved_at = :now WHERE step.result IS NULL;

-- name: step_rows
SELECT name, result FROM step WHERE subject = :subject ORDER BY saved_at, name;

-- name: steps_of
-- The newest first, and of each result its beginning: it may be long.
SELECT s.subject, s.name, substr(s.result, 1, :longest) AS result, s.saved_at FROM json_array_elements_text(:subjects::json) AS j (value) JOIN step s ON s.subject = j.value
ORDER BY s.saved_at DESC, s.name DESC LIMIT :limit;

-- name: tried_in
SELECT item AS id FROM attempt WHERE run = :run ORDER BY item;

-- name: forget_steps
DELETE FROM step USING json_to_recordset(:rows::json) AS r (subject text) WHERE step.subject = r.subject;

-- name: task_held
SELECT id FROM item WHERE id = :item AND held_by = :run AND kind = 'task';

-- name: forget_task_steps
DELETE FROM step USING json_array_elements_text(:tasks::json) AS j (value) WHERE step.subject = 'task:' || j.value;
