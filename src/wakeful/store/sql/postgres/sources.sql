-- name: source_row
SELECT node, outage FROM source WHERE agent = :agent AND source = :source;

-- name: tend_sources
-- Those that are free, ours, or nobody's any more. What is another's is not even touched.
INSERT INTO source (agent, source, node, lease_until)
SELECT DISTINCT j.value ->> 1, j.value ->> 0, :node::text, lease_clock() + :lease
FROM json_array_elements(:sources::json) AS j (value)
WHERE NOT EXISTS (SELECT 1 FROM source o WHERE o.agent = j.value ->> 1 AND o.source = j.value ->> 0
    AND o.node <> :node AND o.lease_until > (SELECT lease_clock()))
ORDER BY 1, 2
ON CONFLICT (agent, source) DO UPDATE SET node = excluded.node, lease_until = excluded.lease_until
WHERE source.node IS NULL OR source.node = excluded.node OR source.lease_until <= lease_clock()
RETURNING source, agent;

-- name: begin_outage
INSERT INTO source (agent, source, outage, since) VALUES (:agent, :source, :why, :now)
ON CONFLICT (agent, source) DO UPDATE SET outage = excluded.outage, since = coalesce(source.since, excluded.since);

-- name: end_outage
UPDATE source SET outage = NULL, since = NULL WHERE agent = :agent AND source = :source AND node IS NOT NULL;

-- name: forget_outage
DELETE FROM source WHERE agent = :agent AND source = :source AND node IS NULL;

-- name: leave_sources
DELETE FROM source WHERE node = :node AND outage IS NULL;

-- name: leave_outages
UPDATE source SET node = NULL, lease_until = NULL WHERE node = :node;

-- name: forget_source
DELETE FROM source WHERE agent = :agent AND source = :source;
