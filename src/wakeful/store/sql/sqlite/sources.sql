-- name: source_row
SELECT node, tenure, outage, told, told_at FROM source WHERE agent = :agent AND source = :source;

-- name: hold_source
SELECT node, tenure, outage, told, told_at FROM source WHERE agent = :agent AND source = :source;

-- name: tend_sources
-- Those that are free, ours, or nobody's any more.
INSERT INTO source (agent, source, node, lease_until, tenure)
SELECT DISTINCT json_extract(j.value, '$[1]'), json_extract(j.value, '$[0]'), :node, :now + :lease, :now
FROM json_each(:sources) j WHERE true
ON CONFLICT (agent, source) DO UPDATE SET node = excluded.node, lease_until = excluded.lease_until,
    tenure = CASE WHEN source.node = excluded.node THEN source.tenure ELSE max(source.tenure + 1, excluded.tenure) END
WHERE source.node IS NULL OR source.node = excluded.node OR source.lease_until <= :now
RETURNING source, agent, tenure;

-- name: begin_outage
INSERT INTO source (agent, source, outage, since, told, told_at) VALUES (:agent, :source, :why, :now, :told, :told_at)
ON CONFLICT (agent, source) DO UPDATE SET outage = excluded.outage, since = coalesce(source.since, excluded.since),
    told = excluded.told, told_at = excluded.told_at;

-- name: end_outage
UPDATE source SET outage = NULL, since = NULL, told = NULL, told_at = NULL
WHERE agent = :agent AND source = :source AND node IS NOT NULL;

-- name: forget_outage
DELETE FROM source WHERE agent = :agent AND source = :source AND node IS NULL;

-- name: leave_sources
DELETE FROM source WHERE node = :node AND outage IS NULL;

-- name: leave_outages
UPDATE source SET node = NULL, lease_until = NULL WHERE node = :node;

-- name: forget_source
-- Unless another one tends it.
DELETE FROM source WHERE agent = :agent AND source = :source
    AND (node IS NULL OR node = :node OR lease_until <= :now);

-- name: next_tenure
UPDATE source SET tenure = tenure + 1 WHERE agent = :agent AND source = :source;
