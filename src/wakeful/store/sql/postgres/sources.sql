-- name: source_row
SELECT node, tenure, outage, told, told_at FROM source WHERE agent = :agent AND source = :source;

-- name: hold_source
-- Until the commit nobody takes it over: what is written rests on whose it is.
SELECT node, tenure, outage, told, told_at FROM source WHERE agent = :agent AND source = :source
FOR NO KEY UPDATE;

-- name: tend_sources
-- Those that are free, ours, or nobody's any more. What is another's is not even touched; nor is what another is late
-- in letting go of: whoever stands still in the middle of a look holds up nobody.
WITH left_over AS (
    SELECT o.agent, o.source FROM source o WHERE o.node <> :node AND o.lease_until <= (SELECT lease_clock())
    FOR NO KEY UPDATE SKIP LOCKED
)
INSERT INTO source (agent, source, node, lease_until, tenure)
SELECT DISTINCT j.value ->> 1, j.value ->> 0, :node::text, lease_clock() + :lease, lease_clock()
FROM json_array_elements(:sources::json) AS j (value)
WHERE NOT EXISTS (SELECT 1 FROM source o WHERE o.agent = j.value ->> 1 AND o.source = j.value ->> 0 AND o.node <> :node
    AND NOT EXISTS (SELECT 1 FROM left_over l WHERE l.agent = o.agent AND l.source = o.source))
ORDER BY 1, 2
ON CONFLICT (agent, source) DO UPDATE SET node = excluded.node, lease_until = excluded.lease_until,
    tenure = CASE WHEN source.node = excluded.node THEN source.tenure ELSE greatest(source.tenure + 1, excluded.tenure) END
WHERE source.node IS NULL OR source.node = excluded.node OR source.lease_until <= lease_clock()
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
    AND (node IS NULL OR node = :node::text OR lease_until <= lease_clock());

-- name: next_tenure
UPDATE source SET tenure = tenure + 1 WHERE agent = :agent AND source = :source;
