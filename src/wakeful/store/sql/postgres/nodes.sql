-- name: join_node
-- Not while another of the name is at work elsewhere.
INSERT INTO node (name, host, url, since, seen_at, lease)
SELECT :node, :host, :url, clock.at, clock.at, :lease FROM (SELECT lease_clock() AS at) AS clock
ON CONFLICT (name) DO UPDATE SET host = excluded.host, url = excluded.url, since = excluded.since,
    seen_at = excluded.seen_at, left_at = NULL, lease = excluded.lease
WHERE node.host = excluded.host OR node.left_at IS NOT NULL OR node.seen_at + node.lease <= excluded.seen_at;

-- name: node_host
SELECT host FROM node WHERE name = :node;

-- name: leave_node
UPDATE node SET seen_at = lease_clock(), left_at = lease_clock() WHERE name = :node;

-- name: renew_runs
-- In the order of their ids: two who want the same never wait in a ring.
WITH held AS (
    SELECT r.id FROM json_array_elements(:runs::json) AS j (value)
    JOIN run r ON r.id = (j.value ->> 0)::bigint AND r.epoch = (j.value ->> 1)::bigint
    WHERE r.node = :node AND r.state = 'running' ORDER BY r.id FOR NO KEY UPDATE OF r
)
UPDATE run SET lease_until = lease_clock() + :lease FROM held WHERE run.id = held.id RETURNING run.id;

-- name: renew_node
-- All that an idle node asks: it is there, the events go up to here, and this is when anything asks for a decision.
UPDATE node SET seen_at = lease_clock(), left_at = NULL, lease = :lease WHERE name = :node
RETURNING last_settled(:log) AS last_event, (
    SELECT min(at) FROM (
        SELECT min(due_at) AS at FROM standing WHERE asked = 0 AND due_at IS NOT NULL
        UNION ALL SELECT min(retry_at) FROM wake WHERE state = 'waiting' AND retry_at IS NOT NULL
        UNION ALL SELECT min(ring_at) FROM item WHERE ring_at IS NOT NULL AND asked IS NULL AND closed_at IS NULL
            AND (shown IS NULL OR shown <> fingerprint OR unanswered > 0)
        UNION ALL SELECT min(until) FROM pause WHERE until IS NOT NULL
        UNION ALL SELECT min(next_at) FROM recurrence
        UNION ALL SELECT :now + min(lease_until) - lease_clock() FROM run WHERE state = 'running'
        UNION ALL SELECT :now WHERE EXISTS (SELECT 1 FROM run WHERE state = 'admitted')
        UNION ALL SELECT :now WHERE EXISTS
            (SELECT 1 FROM run WHERE node = :node AND stop_by IS NOT NULL AND ended_at IS NULL)
        UNION ALL SELECT :now WHERE EXISTS (SELECT 1 FROM attempt t JOIN run r ON r.id = t.run
            WHERE t.stop_by IS NOT NULL AND t.ended_at IS NULL AND r.node = :node AND r.ended_at IS NULL)
        UNION ALL SELECT :now
        WHERE EXISTS (SELECT 1 FROM wake WHERE state = 'waiting' AND guard = 'slots' AND pool = 'sessions')
            AND (SELECT sessions FROM fleet) > (SELECT count(*) FROM run WHERE pool = 'sessions' AND ended_at IS NULL)
        UNION ALL SELECT :now
        WHERE EXISTS (SELECT 1 FROM wake WHERE state = 'waiting' AND guard = 'slots' AND pool = 'workers')
            AND (SELECT workers FROM fleet) > (SELECT count(*) FROM run WHERE pool = 'workers' AND ended_at IS NULL)
        UNION ALL SELECT min(not_before) FROM item WHERE kind = 'task' AND state IN ('pending', 'failed') AND waits_for = 0 AND behind = 0 AND asked IS NULL
            AND not_before IS NOT NULL AND not_before > :now
        -- As `first_ready` and `first_later` have it; behind many that are held up there may be more: then look.
        UNION ALL SELECT CASE WHEN count(*) >= 32 OR bool_or(offered) THEN :now END
        FROM (SELECT (i.key IS NULL OR NOT EXISTS
                (SELECT 1 FROM item older WHERE older.key = i.key AND older.closed_at IS NULL AND older.id < i.id)
                AND NOT EXISTS (SELECT 1 FROM item held WHERE held.key = i.key AND held.key IS NOT NULL AND held.held_by IS NOT NULL)
        -- Taken from its run, and not ended yet.
        AND NOT EXISTS (SELECT 1 FROM attempt s JOIN item left_over ON left_over.id = s.item
            WHERE s.stop_by IS NOT NULL AND s.ended_at IS NULL AND left_over.key = i.key))
            AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || i.source)
            AND NOT EXISTS (SELECT 1 FROM wake w WHERE w.state = 'waiting' AND w.cause = 'task'
                AND coalesce(w.agent, 'role:' || w.role) = i.target
                AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || w.source))
            AND (EXISTS (SELECT 1 FROM role o WHERE i.agent IS NULL AND o.role = i.role
            AND NOT EXISTS (SELECT 1 FROM run b WHERE b.agent = o.agent AND b.ended_at IS NULL))
                OR EXISTS (SELECT 1 FROM agent a WHERE a.name = i.agent AND a.removed_at IS NULL AND a.enabled = 1
            AND NOT EXISTS (SELECT 1 FROM run b WHERE b.agent = a.name AND b.ended_at IS NULL))
                OR EXISTS (SELECT 1 FROM agent a WHERE a.address = i.agent AND a.removed_at IS NULL AND a.enabled = 1
            AND NOT EXISTS (SELECT 1 FROM run b WHERE b.agent = a.name AND b.ended_at IS NULL)))
                AS offered
            FROM ((SELECT id, key, source, target, agent, role FROM item
                WHERE kind = 'task' AND state IN ('pending', 'failed') AND waits_for = 0 AND behind = 0 AND asked IS NULL
                    AND not_before IS NULL ORDER BY place, id LIMIT 32)
                UNION ALL (SELECT id, key, source, target, agent, role FROM item
                WHERE kind = 'task' AND state IN ('pending', 'failed') AND waits_for = 0 AND behind = 0 AND asked IS NULL
                    AND not_before IS NOT NULL AND not_before <= :now ORDER BY not_before, id LIMIT 32)) AS i) AS heads
        WHERE (SELECT workers FROM fleet) > (SELECT count(*) FROM run WHERE pool = 'workers' AND ended_at IS NULL)
    ) AS instants) AS next_at;

-- name: node_rows
SELECT n.name, n.host, n.url, n.since, n.seen_at, n.left_at,
    n.left_at IS NULL AND n.seen_at + n.lease > lease_clock() AS alive,
    (SELECT count(*) FROM run r WHERE r.node = n.name AND r.ended_at IS NULL) AS runs
FROM node n ORDER BY n.name;
