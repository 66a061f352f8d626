-- name: last_shift
-- Not further back than a few runs: what an agent did long ago says little.
SELECT r.started_at, r.ended_at, (SELECT count(*) FROM attempt a WHERE a.run = r.id) AS tasks
FROM (SELECT id, subject, state, started_at, ended_at FROM run WHERE agent = :agent ORDER BY id DESC LIMIT 20) AS r
WHERE r.subject = 'task' AND r.state = 'ended' ORDER BY r.id DESC LIMIT 1;

-- name: idle_siblings
-- Who else is free for the same queues, as far as it matters.
SELECT count(*) AS idle FROM (SELECT s.name FROM
    (SELECT a.name FROM agent a WHERE a.address = :address AND a.removed_at IS NULL AND a.enabled
        UNION SELECT o.agent FROM role o WHERE o.role IN (SELECT value FROM json_each(:roles))) AS s
    WHERE s.name <> :agent AND NOT EXISTS (SELECT 1 FROM run b WHERE b.agent = s.name AND b.ended_at IS NULL)
        AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'agent:' || s.name)
    LIMIT :limit) AS found;
