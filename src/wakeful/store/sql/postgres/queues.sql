-- name: list_tasks
-- Whatever they are; most of what is past went well.
SELECT id FROM item
WHERE kind = 'task' AND id > :after AND id < :before AND (:states::text IS NULL OR state = ANY (ARRAY(SELECT json_array_elements_text(:states::json))))
    AND (:agents::text IS NULL OR agent = ANY (ARRAY(SELECT json_array_elements_text(:agents::json)))) AND (:role::text IS NULL OR role = :role)
    AND (:sender::text IS NULL OR sender = :sender) AND (:key::text IS NULL OR key = :key) AND (:source::text IS NULL OR source = :source)
    AND (:priority::smallint IS NULL OR priority = :priority)
    AND (:tag::text IS NULL OR EXISTS (SELECT 1 FROM json_array_elements_text(tags::json) t (value) WHERE t.value = :tag))
    AND (:text::text IS NULL OR strpos(lower(subject || chr(10) || coalesce(error, '')), lower(:text)) > 0)
ORDER BY id LIMIT :limit;

-- name: latest_tasks
SELECT id FROM item
WHERE kind = 'task' AND id > :after AND id < :before AND (:states::text IS NULL OR state = ANY (ARRAY(SELECT json_array_elements_text(:states::json))))
    AND (:agents::text IS NULL OR agent = ANY (ARRAY(SELECT json_array_elements_text(:agents::json)))) AND (:role::text IS NULL OR role = :role)
    AND (:sender::text IS NULL OR sender = :sender) AND (:key::text IS NULL OR key = :key) AND (:source::text IS NULL OR source = :source)
    AND (:priority::smallint IS NULL OR priority = :priority)
    AND (:tag::text IS NULL OR EXISTS (SELECT 1 FROM json_array_elements_text(tags::json) t (value) WHERE t.value = :tag))
    AND (:text::text IS NULL OR strpos(lower(subject || chr(10) || coalesce(error, '')), lower(:text)) > 0)
ORDER BY id DESC LIMIT :limit;

-- name: count_tasks
SELECT state, count(*) AS tasks FROM item
WHERE kind = 'task' AND (:states::text IS NULL OR state = ANY (ARRAY(SELECT json_array_elements_text(:states::json))))
    AND (:agents::text IS NULL OR agent = ANY (ARRAY(SELECT json_array_elements_text(:agents::json)))) AND (:role::text IS NULL OR role = :role)
    AND (:sender::text IS NULL OR sender = :sender) AND (:key::text IS NULL OR key = :key) AND (:source::text IS NULL OR source = :source)
    AND (:priority::smallint IS NULL OR priority = :priority)
    AND (:tag::text IS NULL OR EXISTS (SELECT 1 FROM json_array_elements_text(tags::json) t (value) WHERE t.value = :tag))
    AND (:text::text IS NULL OR strpos(lower(subject || chr(10) || coalesce(error, '')), lower(:text)) > 0)
GROUP BY state;

-- name: count_all_tasks
SELECT state, count(*) AS tasks FROM item WHERE kind = 'task' GROUP BY state;

-- name: aside_tasks
-- What did not go well, by one state; it is little, however much went well.
SELECT id FROM item
WHERE kind = 'task' AND state IN ('dead_letter', 'blocked', 'failed', 'cancelled') AND state = :state AND id > :after AND id < :before
    AND (:states::text IS NULL OR state = ANY (ARRAY(SELECT json_array_elements_text(:states::json))))
    AND (:agents::text IS NULL OR agent = ANY (ARRAY(SELECT json_array_elements_text(:agents::json)))) AND (:role::text IS NULL OR role = :role)
    AND (:sender::text IS NULL OR sender = :sender) AND (:key::text IS NULL OR key = :key) AND (:source::text IS NULL OR source = :source)
    AND (:priority::smallint IS NULL OR priority = :priority)
    AND (:tag::text IS NULL OR EXISTS (SELECT 1 FROM json_array_elements_text(tags::json) t (value) WHERE t.value = :tag))
    AND (:text::text IS NULL OR strpos(lower(subject || chr(10) || coalesce(error, '')), lower(:text)) > 0)
ORDER BY id LIMIT :limit;

-- name: latest_aside_tasks
SELECT id FROM item
WHERE kind = 'task' AND state IN ('dead_letter', 'blocked', 'failed', 'cancelled') AND state = :state AND id > :after AND id < :before
    AND (:states::text IS NULL OR state = ANY (ARRAY(SELECT json_array_elements_text(:states::json))))
    AND (:agents::text IS NULL OR agent = ANY (ARRAY(SELECT json_array_elements_text(:agents::json)))) AND (:role::text IS NULL OR role = :role)
    AND (:sender::text IS NULL OR sender = :sender) AND (:key::text IS NULL OR key = :key) AND (:source::text IS NULL OR source = :source)
    AND (:priority::smallint IS NULL OR priority = :priority)
    AND (:tag::text IS NULL OR EXISTS (SELECT 1 FROM json_array_elements_text(tags::json) t (value) WHERE t.value = :tag))
    AND (:text::text IS NULL OR strpos(lower(subject || chr(10) || coalesce(error, '')), lower(:text)) > 0)
ORDER BY id DESC LIMIT :limit;

-- name: count_aside_tasks
SELECT state, count(*) AS tasks FROM item
WHERE kind = 'task' AND state IN ('dead_letter', 'blocked', 'failed', 'cancelled') AND (:states::text IS NULL OR state = ANY (ARRAY(SELECT json_array_elements_text(:states::json))))
    AND (:agents::text IS NULL OR agent = ANY (ARRAY(SELECT json_array_elements_text(:agents::json)))) AND (:role::text IS NULL OR role = :role)
    AND (:sender::text IS NULL OR sender = :sender) AND (:key::text IS NULL OR key = :key) AND (:source::text IS NULL OR source = :source)
    AND (:priority::smallint IS NULL OR priority = :priority)
    AND (:tag::text IS NULL OR EXISTS (SELECT 1 FROM json_array_elements_text(tags::json) t (value) WHERE t.value = :tag))
    AND (:text::text IS NULL OR strpos(lower(subject || chr(10) || coalesce(error, '')), lower(:text)) > 0)
GROUP BY state;

-- name: queued_tasks
-- What is open in one queue.
SELECT id FROM item
WHERE kind = 'task' AND closed_at IS NULL AND target = :target AND id > :after AND id < :before
    AND (:states::text IS NULL OR state = ANY (ARRAY(SELECT json_array_elements_text(:states::json))))
    AND (:agents::text IS NULL OR agent = ANY (ARRAY(SELECT json_array_elements_text(:agents::json)))) AND (:role::text IS NULL OR role = :role)
    AND (:sender::text IS NULL OR sender = :sender) AND (:key::text IS NULL OR key = :key) AND (:source::text IS NULL OR source = :source)
    AND (:priority::smallint IS NULL OR priority = :priority)
    AND (:tag::text IS NULL OR EXISTS (SELECT 1 FROM json_array_elements_text(tags::json) t (value) WHERE t.value = :tag))
    AND (:text::text IS NULL OR strpos(lower(subject || chr(10) || coalesce(error, '')), lower(:text)) > 0)
ORDER BY id LIMIT :limit;

-- name: latest_queued_tasks
SELECT id FROM item
WHERE kind = 'task' AND closed_at IS NULL AND target = :target AND id > :after AND id < :before
    AND (:states::text IS NULL OR state = ANY (ARRAY(SELECT json_array_elements_text(:states::json))))
    AND (:agents::text IS NULL OR agent = ANY (ARRAY(SELECT json_array_elements_text(:agents::json)))) AND (:role::text IS NULL OR role = :role)
    AND (:sender::text IS NULL OR sender = :sender) AND (:key::text IS NULL OR key = :key) AND (:source::text IS NULL OR source = :source)
    AND (:priority::smallint IS NULL OR priority = :priority)
    AND (:tag::text IS NULL OR EXISTS (SELECT 1 FROM json_array_elements_text(tags::json) t (value) WHERE t.value = :tag))
    AND (:text::text IS NULL OR strpos(lower(subject || chr(10) || coalesce(error, '')), lower(:text)) > 0)
ORDER BY id DESC LIMIT :limit;

-- name: open_tasks
-- What is open, in whichever queue.
SELECT id FROM item
WHERE kind = 'task' AND closed_at IS NULL AND id > :after AND id < :before AND (:states::text IS NULL OR state = ANY (ARRAY(SELECT json_array_elements_text(:states::json))))
    AND (:agents::text IS NULL OR agent = ANY (ARRAY(SELECT json_array_elements_text(:agents::json)))) AND (:role::text IS NULL OR role = :role)
    AND (:sender::text IS NULL OR sender = :sender) AND (:key::text IS NULL OR key = :key) AND (:source::text IS NULL OR source = :source)
    AND (:priority::smallint IS NULL OR priority = :priority)
    AND (:tag::text IS NULL OR EXISTS (SELECT 1 FROM json_array_elements_text(tags::json) t (value) WHERE t.value = :tag))
    AND (:text::text IS NULL OR strpos(lower(subject || chr(10) || coalesce(error, '')), lower(:text)) > 0)
ORDER BY id LIMIT :limit;

-- name: latest_open_tasks
SELECT id FROM item
WHERE kind = 'task' AND closed_at IS NULL AND id > :after AND id < :before AND (:states::text IS NULL OR state = ANY (ARRAY(SELECT json_array_elements_text(:states::json))))
    AND (:agents::text IS NULL OR agent = ANY (ARRAY(SELECT json_array_elements_text(:agents::json)))) AND (:role::text IS NULL OR role = :role)
    AND (:sender::text IS NULL OR sender = :sender) AND (:key::text IS NULL OR key = :key) AND (:source::text IS NULL OR source = :source)
    AND (:priority::smallint IS NULL OR priority = :priority)
    AND (:tag::text IS NULL OR EXISTS (SELECT 1 FROM json_array_elements_text(tags::json) t (value) WHERE t.value = :tag))
    AND (:text::text IS NULL OR strpos(lower(subject || chr(10) || coalesce(error, '')), lower(:text)) > 0)
ORDER BY id DESC LIMIT :limit;

-- name: count_open_tasks
SELECT state, count(*) AS tasks FROM item
WHERE kind = 'task' AND closed_at IS NULL AND (:states::text IS NULL OR state = ANY (ARRAY(SELECT json_array_elements_text(:states::json))))
    AND (:agents::text IS NULL OR agent = ANY (ARRAY(SELECT json_array_elements_text(:agents::json)))) AND (:role::text IS NULL OR role = :role)
    AND (:sender::text IS NULL OR sender = :sender) AND (:key::text IS NULL OR key = :key) AND (:source::text IS NULL OR source = :source)
    AND (:priority::smallint IS NULL OR priority = :priority)
    AND (:tag::text IS NULL OR EXISTS (SELECT 1 FROM json_array_elements_text(tags::json) t (value) WHERE t.value = :tag))
    AND (:text::text IS NULL OR strpos(lower(subject || chr(10) || coalesce(error, '')), lower(:text)) > 0)
GROUP BY state;

-- name: held_tasks
-- What runs are at; there are no more of them than their shifts have room for.
SELECT id FROM item
WHERE kind = 'task' AND held_by IS NOT NULL AND id > :after AND id < :before AND (:states::text IS NULL OR state = ANY (ARRAY(SELECT json_array_elements_text(:states::json))))
    AND (:agents::text IS NULL OR agent = ANY (ARRAY(SELECT json_array_elements_text(:agents::json)))) AND (:role::text IS NULL OR role = :role)
    AND (:sender::text IS NULL OR sender = :sender) AND (:key::text IS NULL OR key = :key) AND (:source::text IS NULL OR source = :source)
    AND (:priority::smallint IS NULL OR priority = :priority)
    AND (:tag::text IS NULL OR EXISTS (SELECT 1 FROM json_array_elements_text(tags::json) t (value) WHERE t.value = :tag))
    AND (:text::text IS NULL OR strpos(lower(subject || chr(10) || coalesce(error, '')), lower(:text)) > 0);
