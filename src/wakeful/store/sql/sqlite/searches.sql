-- Searches of the past, each within a part of it.

-- name: runs_like
SELECT id FROM (SELECT id, outcome, cause, ended_at FROM run WHERE id < :before ORDER BY id DESC LIMIT :within)
WHERE (:outcome IS NULL OR outcome = :outcome) AND (:cause IS NULL OR cause = :cause) AND (:open IS NULL OR (ended_at IS NULL) = :open)
ORDER BY id DESC LIMIT :limit;

-- name: first_run_within
SELECT min(id) AS first, count(*) AS looked
FROM (SELECT id FROM run WHERE id < :before ORDER BY id DESC LIMIT :within);

-- name: decided_like
SELECT id, kind, at, agent, wake, run, item, fields FROM (SELECT id, kind, at, agent, wake, run, item, fields FROM event
    WHERE id > :after AND id < :before AND kind = 'decided' ORDER BY id DESC LIMIT :within)
WHERE (:cause IS NULL OR json_extract(fields, '$.cause') = :cause)
    AND (json_extract(fields, '$.verdict.kind') IS NULL OR ((:verdict IS NULL OR json_extract(fields, '$.verdict.kind') = :verdict)
        AND (:guard IS NULL OR json_extract(fields, '$.verdict.guard') = :guard)
        AND (:text IS NULL OR instr(lower(coalesce(json_extract(fields, '$.verdict.reason'), '') || char(10)
            || coalesce(json_extract(fields, '$.from'), '') || char(10) || coalesce(agent, '')), lower(:text)) > 0)))
ORDER BY id DESC LIMIT :limit;

-- name: first_decided_within
SELECT min(id) AS first, count(*) AS looked FROM (SELECT id FROM event
    WHERE id > :after AND id < :before AND kind = 'decided' ORDER BY id DESC LIMIT :within);

-- name: agent_runs_like
SELECT id FROM (SELECT id, outcome, cause, ended_at FROM run WHERE agent = :agent AND id < :before ORDER BY id DESC LIMIT :within)
WHERE (:outcome IS NULL OR outcome = :outcome) AND (:cause IS NULL OR cause = :cause) AND (:open IS NULL OR (ended_at IS NULL) = :open)
ORDER BY id DESC LIMIT :limit;

-- name: first_agent_run_within
SELECT min(id) AS first, count(*) AS looked
FROM (SELECT id FROM run WHERE agent = :agent AND id < :before ORDER BY id DESC LIMIT :within);

-- name: agent_decided_like
SELECT id, kind, at, agent, wake, run, item, fields FROM (SELECT id, kind, at, agent, wake, run, item, fields FROM event
    WHERE agent = :agent AND id > :after AND id < :before AND kind = 'decided' ORDER BY id DESC LIMIT :within)
WHERE (:cause IS NULL OR json_extract(fields, '$.cause') = :cause)
    AND (json_extract(fields, '$.verdict.kind') IS NULL OR ((:verdict IS NULL OR json_extract(fields, '$.verdict.kind') = :verdict)
        AND (:guard IS NULL OR json_extract(fields, '$.verdict.guard') = :guard)
        AND (:text IS NULL OR instr(lower(coalesce(json_extract(fields, '$.verdict.reason'), '') || char(10)
            || coalesce(json_extract(fields, '$.from'), '') || char(10) || coalesce(agent, '')), lower(:text)) > 0)))
ORDER BY id DESC LIMIT :limit;

-- name: first_agent_decided_within
SELECT min(id) AS first, count(*) AS looked FROM (SELECT id FROM event
    WHERE agent = :agent AND id > :after AND id < :before AND kind = 'decided' ORDER BY id DESC LIMIT :within);
