-- name: enter_house
SELECT pg_advisory_xact_lock_shared(:house);

-- name: have_house
SELECT pg_advisory_xact_lock(:house);

-- name: try_house
SELECT pg_try_advisory_xact_lock_shared(:house) AS had;

-- name: try_house_alone
SELECT pg_try_advisory_xact_lock(:house) AS had;

-- name: hold_purse
SELECT pg_advisory_xact_lock(:purse);

-- name: have_keys
-- Causal keys are locked in parts, so that a batch of a thousand keys does not fill the table of locks.
SELECT pg_advisory_xact_lock((:number::bigint % 2000000000)::int, k.part)
FROM (SELECT DISTINCT hashtext(n.key) & 255 AS part FROM unnest(:keys::text[]) AS n (key) ORDER BY 1) AS k;

-- name: share_keys
SELECT pg_advisory_xact_lock_shared((:number::bigint % 2000000000)::int, k.part)
FROM (SELECT DISTINCT hashtext(n.key) & 255 AS part FROM unnest(:keys::text[]) AS n (key) ORDER BY 1) AS k;

-- name: try_have_keys
SELECT coalesce(bool_and(pg_try_advisory_xact_lock((:number::bigint % 2000000000)::int, k.part)), true) AS had
FROM (SELECT DISTINCT hashtext(n.key) & 255 AS part FROM unnest(:keys::text[]) AS n (key) ORDER BY 1) AS k;

-- name: try_share_keys
SELECT coalesce(bool_and(pg_try_advisory_xact_lock_shared((:number::bigint % 2000000000)::int, k.part)), true) AS had
FROM (SELECT DISTINCT hashtext(n.key) & 255 AS part FROM unnest(:keys::text[]) AS n (key) ORDER BY 1) AS k;

-- name: last_settled
SELECT last_settled(:log) AS id;

-- name: addresses_of_names
-- In the order of their names, here as below: two who want the same never wait in a ring.
SELECT d.name FROM address d WHERE d.name = ANY (ARRAY(
    SELECT n.name COLLATE "C" FROM unnest(:names::text[]) AS n (name)
    UNION ALL SELECT a.address FROM agent a WHERE a.name = ANY (:names::text[])
)) ORDER BY d.name FOR NO KEY UPDATE;

-- name: addresses_of_runs
SELECT d.name FROM address d WHERE d.name = ANY (ARRAY(SELECT r.address FROM run r WHERE r.id = ANY (:runs::bigint[])))
ORDER BY d.name FOR NO KEY UPDATE;

-- name: addresses
-- Of all whom these wakes, runs and tasks concern.
SELECT d.name FROM address d WHERE d.name = ANY (ARRAY(
    SELECT n.name COLLATE "C" FROM unnest(:names::text[]) AS n (name)
    UNION ALL SELECT a.address FROM agent a WHERE a.name = ANY (:names::text[])
    UNION ALL SELECT a.address FROM role o JOIN agent a ON a.name = o.agent WHERE o.role = ANY (:roles::text[])
    UNION ALL SELECT r.address FROM run r WHERE r.id = ANY (:runs::bigint[])
    UNION ALL SELECT r.address FROM item i JOIN run r ON r.id = i.held_by WHERE i.id = ANY (:items::bigint[])
    UNION ALL SELECT i.agent FROM item i WHERE i.id = ANY (:items::bigint[])
    UNION ALL SELECT a.address FROM item i JOIN agent a ON a.name = i.agent WHERE i.id = ANY (:items::bigint[])
    UNION ALL SELECT a.address FROM item i JOIN role o ON o.role = i.role JOIN agent a ON a.name = o.agent
        WHERE i.id = ANY (:items::bigint[])
)) ORDER BY d.name FOR NO KEY UPDATE;

-- name: take_slots
-- So many that are free and that nobody else is taking; `crowded` while runs are open that the fleet has no slots for
-- any more.
SELECT s.number, EXISTS (SELECT 1 FROM slot o WHERE o.pool = :pool AND o.number > :slots AND o.run IS NOT NULL) AS crowded
FROM slot s WHERE s.pool = :pool AND s.run IS NULL AND s.number <= :slots
ORDER BY s.number LIMIT :limit FOR UPDATE OF s SKIP LOCKED;

-- name: count_pool
SELECT count(*) AS taken FROM run WHERE pool = :pool AND ended_at IS NULL;

-- name: number_slots
-- As many as the fleet has, and those that are in use beyond. Nobody else is in the house.
INSERT INTO slot (pool, number, run)
SELECT p.pool, n.number, r.id
FROM (SELECT 'sessions' AS pool, sessions AS most FROM fleet UNION ALL SELECT 'workers', workers FROM fleet) AS p
CROSS JOIN LATERAL generate_series(1, greatest(p.most,
    (SELECT count(*) FROM run o WHERE o.pool = p.pool AND o.ended_at IS NULL))) AS n (number)
LEFT JOIN (SELECT id, pool, row_number() OVER (PARTITION BY pool ORDER BY id) AS number
    FROM run WHERE ended_at IS NULL) AS r ON r.pool = p.pool AND r.number = n.number;

-- name: forget_slots
DELETE FROM slot;
