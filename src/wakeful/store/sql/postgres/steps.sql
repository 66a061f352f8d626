-- name: put_step
INSERT INTO step (subject, name, result, saved_at) VALUES (:subject, :name, :result, :now)
ON CONFLICT (subject, name) DO UPDATE SET result = :result, saved_at = :now WHERE step.result IS NULL;

-- name: step_rows
SELECT name, result FROM step WHERE subject = :subject ORDER BY saved_at, name;

-- name: forget_steps
DELETE FROM step USING json_to_recordset(:rows::json) AS r (subject text) WHERE step.subject = r.subject;

-- name: task_held
SELECT id FROM item WHERE id = :item AND held_by = :run AND kind = 'task';

-- name: forget_task_steps
DELETE FROM step USING json_array_elements_text(:tasks::json) AS j (value) WHERE step.subject = 'task:' || j.value;
