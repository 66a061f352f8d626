-- Searches of the past, each within a part of it.

-- name: runs_like
SELECT id FROM (SELECT id, outcome, cause, ended_at FROM run WHERE id < :before ORDER BY id DESC LIMIT :within) AS looked
WHERE (:outcome::text IS NULL OR outcome = :outcome::text) AND (:cause::text IS NULL OR cause = :cause::text) AND (:open::integer IS NULL OR (ended_at IS NULL)::integer = :open::integer)
ORDER BY id DESC LIMIT :limit;

-- name: first_run_within
SELECT min(id) AS first, count(*) AS looked
FROM (SELECT id FROM run WHERE id < :before ORDER BY id DESC LIMIT :within) AS within;

-- name: decided_like
SELECT id, kind, at, agent, wake, run, item, fields FROM (SELECT id, kind, at, agent, wake, run, item, fields FROM event
    WHERE id > :after AND id < :before AND id <= :settled AND kind = 'decided' ORDER BY id DESC LIMIT :within) AS looked
-- What JSON can say and no text of PostgreSQL (a zero, half a character) is left to whoever asks.
WHERE (:cause::text IS NULL OR fields::json ->> 'cause' = :cause)
    AND (fields::json -> 'verdict' IS NULL OR ((:verdict::text IS NULL OR fields::json #>> '{verdict,kind}' = :verdict)
        AND (:guard::text IS NULL OR fields::json #>> '{verdict,guard}' = :guard)
        AND (:text::text IS NULL OR CASE WHEN fields ~* '\\u0000|\\ud[89ab]..(?!\\ud[c-f])|(?<!\\ud[89ab]..)\\ud[c-f]' THEN true ELSE
            strpos(lower(coalesce(fields::json #>> '{verdict,reason}', '') || chr(10)
                || coalesce(fields::json ->> 'from', '') || chr(10) || coalesce(agent, '')), lower(:text)) > 0 END)))
ORDER BY id DESC LIMIT :limit;

-- name: first_decided_within
SELECT min(id) AS first, count(*) AS looked FROM (SELECT id FROM event
    WHERE id > :after AND id < :before AND id <= :settled AND kind = 'decided' ORDER BY id DESC LIMIT :within) AS within;

-- name: agent_runs_like
SELECT id FROM (SELECT id, outcome, cause, ended_at FROM run WHERE agent = :agent AND id < :before ORDER BY id DESC LIMIT :within) AS looked
WHERE (:outcome::text IS NULL OR outcome = :outcome::text) AND (:cause::text IS NULL OR cause = :cause::text) AND (:open::integer IS NULL OR (ended_at IS NULL)::integer = :open::integer)
ORDER BY id DESC LIMIT :limit;

-- name: first_agent_run_within
SELECT min(id) AS first, count(*) AS looked
FROM (SELECT id FROM run WHERE agent = :agent AND id < :before ORDER BY id DESC LIMIT :within) AS within;

-- name: agent_decided_like
SELECT id, kind, at, agent, wake, run, item, fields FROM (SELECT id, kind, at, agent, wake, run, item, fields FROM event
    WHERE agent = :agent AND id > :after AND id < :before AND id <= :settled AND kind = 'decided' ORDER BY id DESC LIMIT :within) AS looked
-- What JSON can say and no text of PostgreSQL (a zero, half a character) is left to whoever asks.
WHERE (:cause::text IS NULL OR fields::json ->> 'cause' = :cause)
    AND (fields::json -> 'verdict' IS NULL OR ((:verdict::text IS NULL OR fields::json #>> '{verdict,kind}' = :verdict)
        AND (:guard::text IS NULL OR fields::json #>> '{verdict,guard}' = :guard)
        AND (:text::text IS NULL OR CASE WHEN fields ~* '\\u0000|\\ud[89ab]..(?!\\ud[c-f])|(?<!\\ud[89ab]..)\\ud[c-f]' THEN true ELSE
            strpos(lower(coalesce(fields::json #>> '{verdict,reason}', '') || chr(10)
                || coalesce(fields::json ->> 'from', '') || chr(10) || coalesce(agent, '')), lower(:text)) > 0 END)))
ORDER BY id DESC LIMIT :limit;

-- name: first_agent_decided_within
SELECT min(id) AS first, count(*) AS looked FROM (SELECT id FROM event
    WHERE agent = :agent AND id > :after AND id < :before AND id <= :settled AND kind = 'decided' ORDER BY id DESC LIMIT :within) AS within;
