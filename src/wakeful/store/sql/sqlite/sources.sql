-- name: source_row
SELECT node, outage FROM source WHERE agent = :agent AND source = :source;

-- name: tend_sources
-- Those that are free, ours, or nobody's any more.
INSERT INTO source (agent, source, node, lease_until)
SELECT DISTINCT json_extract(j.value, '$[1]'), json_extract(j.value, '$[0]'), :node, :now + :lease
FROM json_each(:sources) j WHERE true
ON CONFLICT (agent, source) DO UPDATE SET node = excluded.node, lease_until = excluded.lease_until
WHERE source.node IS NULL OR source.node = excluded.node OR source.lease_until <= :now
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
