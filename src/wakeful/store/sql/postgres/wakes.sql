-- name: facts
-- Every scalar that a guard reads, in one look, for each of the wakes; each part is one probe of an index.
SELECT
    s.state, s.hits, s.idle_streak, s.failure_streak, s.due_at, s.epoch, s.beat, s.gates, s.costs, s.last_outcome,
    s.last_ended_at, s.agent,
    (SELECT json_build_array(q.scope, q.owner, q.reason, q.since, q.until)::text FROM pause q
        WHERE q.scope = 'fleet' AND (q.until IS NULL OR q.until > p.now) ORDER BY q.owner LIMIT 1) AS fleet_pause,
    (SELECT json_build_array(q.scope, q.owner, q.reason, q.since, q.until)::text FROM pause q
        WHERE q.scope = p.pause_agent AND (q.until IS NULL OR q.until > p.now) ORDER BY q.owner LIMIT 1) AS agent_pause,
    (SELECT json_build_array(q.scope, q.owner, q.reason, q.since, q.until)::text FROM pause q
        WHERE q.scope = p.pause_address AND (q.until IS NULL OR q.until > p.now) ORDER BY q.owner LIMIT 1) AS address_pause,
    (SELECT json_build_array(q.scope, q.owner, q.reason, q.since, q.until)::text FROM pause q
        WHERE q.scope = p.pause_source AND (q.until IS NULL OR q.until > p.now) ORDER BY q.owner LIMIT 1) AS source_pause,
    (SELECT count(*) FROM wake w WHERE w.by_run = p.by_run AND w.cause = 'peer' AND w.id <> p.wake
        AND (w.charged = 1 OR w.state = 'waiting')) AS wakes_by_run,
    -- Whose run that is, as it is declared now.
    (SELECT json_build_array(a.name, a.version)::text FROM run r JOIN agent a ON a.name = r.agent
        WHERE r.id = p.by_run AND a.removed_at IS NULL) AS asks,
    -- The last in order, not the latest by its stamp: the clock may have been set back since.
    (SELECT r.admitted_at FROM run r WHERE r.address = p.address AND r.charged = 1 AND r.state <> 'void'
        AND r.wake <> p.wake ORDER BY r.id DESC LIMIT 1) AS last_peer_wake_at,
    own.wakes AS wakes_today, own.ms AS ms_today, own.usd AS usd_today, own.tokens AS tokens_today,
    pair.wakes AS pair_wakes_today, whole.usd AS fleet_usd, whole.tokens AS fleet_tokens,
    (SELECT count(*) FROM run r WHERE r.agent = p.agent AND r.admitted_at > p.burst_since AND r.admitted_at < p.burst_until
        AND r.cause IN ('timer', 'peer', 'news') AND r.state <> 'void') AS burst_starts,
    (SELECT r.id FROM run r WHERE r.agent = p.agent AND r.ended_at IS NULL) AS busy_with,
    (SELECT count(*) FROM run r WHERE r.pool = p.pool AND r.ended_at IS NULL) AS slots_open,
    -- Whoever waits longer for a slot of this pool is served first.
    CASE WHEN (SELECT 1 FROM wake w WHERE w.state = 'waiting' AND w.guard = 'slots' AND w.pool = p.pool LIMIT 1) = 1
        THEN (SELECT count(*) FROM (SELECT 1 FROM wake w WHERE w.state = 'waiting' AND w.guard = 'slots'
            AND w.pool = p.pool AND coalesce(w.agent, w.role) <> p.place
            -- An agent's better wake stands where its oldest one does.
            AND w.requested_at < least(p.requested_at, coalesce((SELECT min(v.requested_at) FROM wake v
                WHERE v.state = 'waiting' AND v.guard = 'slots' AND v.pool = p.pool
                AND coalesce(v.agent, v.role) = p.place), p.requested_at))
            LIMIT p.slots) AS before_us)
        ELSE 0 END AS slots_ahead,
    -- Not as EXISTS, which may be answered for all agents at once, by a look at everything that rings.
    (SELECT 1 FROM item i WHERE i.agent = p.agent AND i.ring_at IS NOT NULL
        AND (i.ring_at <= p.now OR i.asked IS NOT NULL) AND (i.not_before IS NULL OR i.not_before <= p.now)
        AND i.closed_at IS NULL AND (i.shown IS NULL OR i.shown <> i.fingerprint OR i.unanswered > 0)
        AND i.held_by IS NULL LIMIT 1) IS NOT NULL
    OR (p.address <> p.agent AND (SELECT 1 FROM item i WHERE i.agent = p.address AND i.ring_at IS NOT NULL
        AND (i.ring_at <= p.now OR i.asked IS NOT NULL) AND (i.not_before IS NULL OR i.not_before <= p.now)
        AND i.closed_at IS NULL
        AND (i.shown IS NULL OR i.shown <> i.fingerprint OR i.unanswered > 0) AND i.held_by IS NULL LIMIT 1) IS NOT NULL)
        AS rings,
    (SELECT r.day FROM run r WHERE r.wake = p.wake AND r.charged = 1 AND r.state <> 'void' ORDER BY r.id LIMIT 1) AS charged_day,
    t.state AS task_state, t.waits_for AS task_waits_for, t.not_before AS task_not_before,
    t.attempts AS task_attempts,
    CASE WHEN t.key IS NULL THEN NULL ELSE coalesce(
        (SELECT min(held.id) FROM item held WHERE held.key = t.key AND held.key IS NOT NULL AND held.held_by IS NOT NULL AND held.id <> t.id),
        (SELECT min(s.item) FROM attempt s JOIN item left_over ON left_over.id = s.item
            WHERE s.stop_by IS NOT NULL AND s.ended_at IS NULL AND left_over.key = t.key),
        (SELECT min(older.id) FROM item older WHERE older.key = t.key AND older.closed_at IS NULL AND older.id < t.id)) END
        AS task_behind,
    -- Of what has waited: what came meanwhile, and has a better place in the same queue.
    CASE WHEN p.wake > 0 AND t.id IS NOT NULL THEN (SELECT better.id FROM (SELECT n.id, n.place, n.key, n.source FROM item n
        WHERE n.target = t.target AND n.kind = 'task' AND n.state IN ('pending', 'failed') AND n.waits_for = 0 AND n.behind = 0
            AND n.asked IS NULL AND n.not_before IS NULL AND (n.place < t.place OR (n.place = t.place AND n.id < t.id))
        ORDER BY n.place, n.id LIMIT 32) AS better
        WHERE (better.key IS NULL OR NOT EXISTS
            (SELECT 1 FROM item older WHERE older.key = better.key AND older.closed_at IS NULL AND older.id < better.id)
            AND NOT EXISTS (SELECT 1 FROM item held WHERE held.key = better.key AND held.key IS NOT NULL AND held.held_by IS NOT NULL)
            AND NOT EXISTS (SELECT 1 FROM attempt s JOIN item left_over ON left_over.id = s.item
                WHERE s.stop_by IS NOT NULL AND s.ended_at IS NULL AND left_over.key = better.key))
            AND NOT EXISTS (SELECT 1 FROM pause q WHERE q.scope = 'source:' || better.source)
        ORDER BY better.place, better.id LIMIT 1) END AS task_before
FROM json_to_recordset(:rows::json) AS p (agent text, address text, place text, wake bigint, by_run bigint, task bigint,
    pool text, requested_at bigint, slots bigint, burst_since bigint, burst_until bigint, agent_total text, pair_total text, day text,
    fleet_day text, pause_agent text, pause_address text, pause_source text, now bigint)
JOIN standing s ON s.agent = p.agent
LEFT JOIN total own ON own.scope = p.agent_total AND own.day = p.day
LEFT JOIN total pair ON pair.scope = p.pair_total AND pair.day = p.day
CROSS JOIN LATERAL (SELECT sum(f.usd)::bigint AS usd, sum(f.tokens)::bigint AS tokens FROM total f
    WHERE f.scope = 'fleet' AND f.day = p.fleet_day) AS whole
LEFT JOIN item t ON t.id = p.task;

-- name: candidates
-- Who may take a wake that names an address: the idle first, then whoever has rested longest.
SELECT a.name, a.address, a.version, a.declaration, a.overrides, a.enabled, a.removed_at,
    EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'agent:' || a.name) AS paused,
    EXISTS (SELECT 1 FROM run r WHERE r.agent = a.name AND r.ended_at IS NULL) AS busy
FROM agent a JOIN standing s ON s.agent = a.name
WHERE a.address = :target AND a.removed_at IS NULL AND a.enabled = 1
ORDER BY paused, busy, coalesce(s.last_ended_at, 0), a.name;

-- name: role_candidates
SELECT a.name, a.address, a.version, a.declaration, a.overrides, a.enabled, a.removed_at,
    EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'agent:' || a.name) AS paused,
    EXISTS (SELECT 1 FROM run r WHERE r.agent = a.name AND r.ended_at IS NULL) AS busy
FROM role o JOIN agent a ON a.name = o.agent JOIN standing s ON s.agent = a.name
WHERE o.role = :role AND a.removed_at IS NULL AND a.enabled = 1
ORDER BY paused, busy, coalesce(s.last_ended_at, 0), a.name;

-- name: sender_address
SELECT address FROM agent WHERE name = :name;

-- name: address_row
SELECT name FROM address WHERE name = :name;

-- name: retry_spend
-- Money came back: the agent's own wakes, and the oldest of the others. Who is about to be let go anyway is left alone.
UPDATE wake SET retry_at = :now, offered = :now
WHERE id = ANY (ARRAY(SELECT id FROM wake
    WHERE state = 'waiting' AND guard = 'spend' AND (retry_at IS NULL OR retry_at > :later)
    ORDER BY coalesce(agent IN (:agent, :address), false) DESC, requested_at, id LIMIT :limit FOR UPDATE SKIP LOCKED));

-- name: pass_spend
-- Whoever is decided because money came back passes the offer on, to the next who have not been decided since then.
-- As an array, which is found once: in a join it may be looked for again for each row, behind those just updated.
UPDATE wake SET retry_at = :now, offered = (SELECT least(o.offered, :now) FROM wake o WHERE o.id = :wake)
WHERE id = ANY (ARRAY(SELECT n.id FROM wake o CROSS JOIN LATERAL (SELECT w.id FROM wake w
        WHERE w.state = 'waiting' AND w.guard = 'spend' AND w.retry_at > :later AND w.decided_at < least(o.offered, :now)
        ORDER BY w.requested_at, w.id LIMIT :limit FOR UPDATE SKIP LOCKED) AS n
    WHERE o.id = :wake AND o.offered IS NOT NULL));

-- name: retry_joined
UPDATE wake SET retry_at = :now WHERE id = :wake AND guard IS NULL AND retry_at > :now;

-- name: waiting_like
SELECT id, guard, verdict, retry_at FROM wake WHERE coalesce(agent, '') = coalesce(:agent::text, '') AND cause = :cause AND subject = :subject
    AND coalesce(task, 0) = coalesce(:task::bigint, 0) AND slot = :slot AND state = 'waiting';

-- name: waiting_wake
SELECT id, agent, role, cause, subject, sender, reason, item, task, source, by_run, root, depth, lineage_usd, slot,
    attempt, charged, requested_at
FROM wake WHERE id = :wake AND state = 'waiting';

-- name: next_joined
-- The oldest that joined a wake to which a guard objected for its sender's sake, and may have no objection to this one.
SELECT id, agent, role, cause, subject, sender, reason, item, task, source, by_run, root, depth, lineage_usd, slot,
    attempt, charged, requested_at
FROM wake WHERE joined = :wake AND CASE :guard::text WHEN 'wakes_per_run' THEN by_run IS DISTINCT FROM :by_run::bigint
    WHEN 'wakes_per_pair' THEN sender IS DISTINCT FROM :sender::text ELSE depth < :depth END
ORDER BY id LIMIT 1;

-- name: wait_instead
UPDATE wake SET state = 'waiting', joined = NULL, guard = NULL, verdict = '', retry_at = :now WHERE id = :wake;

-- name: join_instead
UPDATE wake SET joined = :next WHERE joined = :wake AND CASE :guard::text WHEN 'wakes_per_run' THEN by_run IS DISTINCT FROM :by_run::bigint
    WHEN 'wakes_per_pair' THEN sender IS DISTINCT FROM :sender::text ELSE depth < :depth END;

-- name: sweep_item
-- No beat will ever show it: the sweep will.
UPDATE item SET asked = NULL, ring = 'silent', ring_at = greatest(:ring_at, coalesce(not_before, 0))
WHERE id = :item AND closed_at IS NULL AND (SELECT timerless FROM address WHERE name = item.agent) = 1;

-- name: sweep_joined
-- And what others asked for with it.
UPDATE item SET asked = NULL, ring = 'silent', ring_at = greatest(:ring_at, coalesce(not_before, 0))
WHERE id IN (SELECT w.item FROM wake w WHERE w.joined = :wake AND w.item IS NOT NULL) AND closed_at IS NULL
    AND asked IN (SELECT w.id FROM wake w WHERE w.joined = :wake) AND (SELECT timerless FROM address WHERE name = item.agent) = 1;

-- name: ring_later
-- The clock was set back behind an item that had rung: it has not asked yet.
UPDATE item SET asked = NULL
WHERE agent IN (:agent, :address) AND ring_at IS NOT NULL AND closed_at IS NULL
    AND (shown IS NULL OR shown <> fingerprint OR unanswered > 0)
    AND asked IS NOT NULL AND not_before IS NOT NULL AND not_before > :now AND (shown IS NULL OR shown <> fingerprint);

-- name: ring_again
UPDATE item SET asked = NULL
WHERE agent IN (:agent, :address) AND ring_at IS NOT NULL AND closed_at IS NULL
    AND (shown IS NULL OR shown <> fingerprint OR unanswered > 0);

-- name: next_wake
SELECT nextval('wake_id_seq') AS id FROM generate_series(1, :count::bigint);

-- name: put_wake
INSERT INTO wake (id, agent, role, cause, subject, state, sender, reason, item, task, source, by_run, root, depth,
    lineage_usd, slot, attempt, charged, joined, guard, verdict, retry_at, rank, pool, requested_at, decided_at)
SELECT r.id, r.agent, r.role, r.cause, r.subject, r.state, r.sender, r.reason, r.item, r.task, r.source, r.by_run, r.root,
    r.depth, r.lineage_usd, r.slot, r.attempt, r.charged, r.joined, r.guard, r.verdict, r.retry_at, r.rank, r.pool,
    r.requested_at, r.decided_at
FROM json_to_recordset(:rows::json) AS r (id bigint, agent text, role text, cause text, subject text, state text,
    sender text, reason text, item bigint, task bigint, source text, by_run bigint, root bigint, depth int,
    lineage_usd bigint, slot text, attempt int, charged smallint, joined bigint, guard text, verdict text,
    retry_at bigint, rank int, pool text, requested_at bigint, decided_at bigint);

-- name: decide_wake
UPDATE wake SET state = r.state, charged = r.charged, guard = r.guard, verdict = r.verdict, retry_at = r.retry_at,
    decided_at = r.decided_at, offered = NULL
FROM json_to_recordset(:rows::json) AS r (wake bigint, state text, charged smallint, guard text, verdict text,
    retry_at bigint, decided_at bigint)
WHERE wake.id = r.wake;

-- name: lineage
-- With what all that came of the same root has cost by now; of what is under way, what was set aside for it. What it took may stand deeper.
SELECT w.id, w.root, greatest(w.depth, coalesce((SELECT max(i.depth) FROM attempt a JOIN item i ON i.id = a.item WHERE a.run = r.id), 0)) AS depth,
    coalesce((SELECT sum(CASE WHEN l.ended_at IS NULL THEN l.reserved_usd ELSE l.spent_usd END) FROM run l
        WHERE l.wake = coalesce(w.root, w.id)), 0)::bigint + coalesce((SELECT sum(CASE WHEN l.ended_at IS NULL THEN l.reserved_usd ELSE l.spent_usd END)
        FROM wake v JOIN run l ON l.wake = v.id WHERE v.root = coalesce(w.root, w.id)), 0)::bigint AS cost
FROM run r JOIN wake w ON w.id = r.wake WHERE r.id = :run;

-- name: lineages
SELECT r.id AS run, w.id, w.root, greatest(w.depth, coalesce((SELECT max(i.depth) FROM attempt a JOIN item i ON i.id = a.item WHERE a.run = r.id), 0)) AS depth,
    coalesce((SELECT sum(CASE WHEN l.ended_at IS NULL THEN l.reserved_usd ELSE l.spent_usd END) FROM run l
        WHERE l.wake = coalesce(w.root, w.id)), 0)::bigint + coalesce((SELECT sum(CASE WHEN l.ended_at IS NULL THEN l.reserved_usd ELSE l.spent_usd END)
        FROM wake v JOIN run l ON l.wake = v.id WHERE v.root = coalesce(w.root, w.id)), 0)::bigint AS cost
FROM run r JOIN wake w ON w.id = r.wake WHERE r.id = ANY (:runs::bigint[]);

-- name: still_waiting
SELECT id, agent, role, cause, subject, sender, reason, item, task, source, by_run, root, depth, lineage_usd, slot,
    attempt, charged, requested_at
FROM wake WHERE id = ANY (:wakes::bigint[]) AND state = 'waiting';

-- name: waiting_alike
-- For whom of these one waits already.
SELECT r.agent FROM json_to_recordset(:rows::json) AS r (agent text, cause text, subject text, slot text)
JOIN wake w ON coalesce(w.agent, '') = r.agent AND w.cause = r.cause AND w.subject = r.subject
    AND coalesce(w.task, 0) = 0 AND w.slot = r.slot AND w.state = 'waiting';

-- name: agents_named
SELECT name, address, version, enabled, removed_at FROM agent WHERE name = ANY (:names::text[]);

-- name: asked_standing
SELECT agent FROM standing WHERE agent = :agent AND asked = 1;

-- name: asked_standings
SELECT agent FROM standing WHERE agent = ANY (:agents::text[]) AND asked = 1;

-- name: asked_item
SELECT id FROM item WHERE id = :item AND asked IS NOT NULL;

-- name: asked_items
SELECT id FROM item WHERE id = ANY (:items::bigint[]) AND asked IS NOT NULL;

-- name: ask_standing
UPDATE standing SET asked = r.asked FROM json_to_recordset(:rows::json) AS r (agent text, asked smallint)
WHERE standing.agent = r.agent;

-- name: skip_beat
UPDATE standing SET idle_streak = :idle_streak, due_at = :due_at WHERE agent = :agent;

-- name: check_again
-- A beat that a CHECK held back waits for nothing but its due instant, wherever that has moved.
UPDATE wake SET retry_at = :at
WHERE state = 'waiting' AND coalesce(agent, '') = :agent AND cause = 'timer' AND subject = 'beat'
    AND coalesce(task, 0) = 0 AND slot = '' AND guard = 'check';

-- name: add_total
-- The fleet's in the part of whoever writes; what is given back there may have been reserved elsewhere.
WITH given AS MATERIALIZED (
    SELECT r.*, CASE WHEN r.scope = 'fleet' THEN pg_backend_pid() % 64 ELSE 0 END AS part
    FROM json_to_recordset(:rows::json) AS r (scope text, day text, wakes bigint, ms bigint, usd bigint, tokens bigint)
), added AS (
    UPDATE total SET wakes = total.wakes + g.wakes, ms = total.ms + g.ms, usd = total.usd + g.usd,
        tokens = total.tokens + g.tokens
    FROM given g WHERE total.scope = g.scope AND total.day = g.day AND total.part = g.part RETURNING g.scope, g.day
)
INSERT INTO total (scope, day, part, wakes, ms, usd, tokens)
SELECT g.scope, g.day, g.part, CASE WHEN g.scope = 'fleet' THEN g.wakes ELSE greatest(g.wakes, 0) END,
    CASE WHEN g.scope = 'fleet' THEN g.ms ELSE greatest(g.ms, 0) END,
    CASE WHEN g.scope = 'fleet' THEN g.usd ELSE greatest(g.usd, 0) END,
    CASE WHEN g.scope = 'fleet' THEN g.tokens ELSE greatest(g.tokens, 0) END
FROM given g WHERE NOT EXISTS (SELECT 1 FROM added d WHERE d.scope = g.scope AND d.day = g.day)
-- Another with the same part may have been the first of the day.
ON CONFLICT (scope, day, part) DO UPDATE SET
    wakes = total.wakes + excluded.wakes, ms = total.ms + excluded.ms, usd = total.usd + excluded.usd,
    tokens = total.tokens + excluded.tokens;

-- name: total_row
SELECT sum(wakes)::bigint AS wakes, sum(ms)::bigint AS ms, sum(usd)::bigint AS usd, sum(tokens)::bigint AS tokens
FROM total WHERE scope = :scope AND day = :day HAVING count(*) > 0;

-- name: totals
-- Of these scopes, over a few days.
SELECT t.scope, t.day, sum(t.wakes)::bigint AS wakes, sum(t.ms)::bigint AS ms, sum(t.usd)::bigint AS usd,
    sum(t.tokens)::bigint AS tokens
FROM json_array_elements_text(:scopes::json) AS j (value)
JOIN total t ON t.scope = j.value AND t.day >= :first AND t.day <= :last GROUP BY t.scope, t.day;

-- name: pair_rows
-- Of the pairs of that day those that begin or end with one address.
SELECT scope, wakes FROM total
WHERE day = :day AND scope >= 'pair:' AND scope < 'pair;' AND wakes > 0
    AND (starts_with(scope, :begin::text) OR right(scope, length(:end::text)) = :end::text);

-- name: open_run
-- Without a slot there is no run: whoever decided had one in hand.
WITH given AS MATERIALIZED (
    SELECT r.*, nextval('run_id_seq') AS id FROM ROWS FROM (json_to_recordset(:rows::json) AS (agent text, address text,
        wake bigint, cause text, subject text, pool text, version bigint, position text, hits int, beat bigint, attempt int,
        charged smallint, pair text, day text, fleet_day text, reserved_usd bigint, reserved_tokens bigint, now bigint
    )) WITH ORDINALITY AS r (agent, address, wake, cause, subject, pool, version, position, hits, beat, attempt, charged,
        pair, day, fleet_day, reserved_usd, reserved_tokens, now, place)
), free AS MATERIALIZED (
    SELECT s.number FROM slot s WHERE s.pool = (SELECT min(g.pool) FROM given g) AND s.run IS NULL
    ORDER BY s.number LIMIT (SELECT count(*) FROM given) FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE slot SET run = g.id
    FROM (SELECT number, row_number() OVER (ORDER BY number) AS place FROM free) AS f JOIN given g ON g.place = f.place
    WHERE slot.pool = g.pool AND slot.number = f.number RETURNING slot.run
)
INSERT INTO run (id, agent, address, wake, cause, subject, pool, state, version, position, hits, beat, attempt, charged,
    pair, day, fleet_day, reserved_usd, reserved_tokens, admitted_at)
SELECT g.id, g.agent, g.address, g.wake, g.cause, g.subject, g.pool, 'admitted', g.version, g.position, g.hits, g.beat,
    g.attempt, g.charged, g.pair, g.day, g.fleet_day, g.reserved_usd, g.reserved_tokens, g.now
FROM given g JOIN taken t ON t.run = g.id ORDER BY g.place
RETURNING id;

-- name: due_standings
SELECT agent, due_at FROM standing WHERE asked = 0 AND due_at IS NOT NULL AND due_at <= :now
ORDER BY due_at, agent LIMIT :limit;

-- name: due_wakes
SELECT id, agent, role, cause, subject, sender, reason, item, task, source, by_run, root, depth, lineage_usd, slot,
    attempt, charged, requested_at
FROM wake WHERE state = 'waiting' AND retry_at IS NOT NULL AND retry_at <= :now ORDER BY retry_at, id LIMIT :limit;

-- name: wakes_for_slots
SELECT id, agent, role, cause, subject, sender, reason, item, task, source, by_run, root, depth, lineage_usd, slot,
    attempt, charged, requested_at
FROM wake WHERE state = 'waiting' AND guard = 'slots' AND pool = :pool ORDER BY requested_at, id LIMIT :limit;

-- name: ringing_items
SELECT id, agent, ring, sender, source, by_run, ring_at FROM item
WHERE ring_at IS NOT NULL AND asked IS NULL AND closed_at IS NULL AND ring_at <= :now
    AND (shown IS NULL OR shown <> fingerprint OR unanswered > 0)
ORDER BY ring_at, id LIMIT :limit;

-- name: free_slots
SELECT
    f.sessions - (SELECT count(*) FROM run WHERE pool = 'sessions' AND ended_at IS NULL) AS sessions,
    f.workers - (SELECT count(*) FROM run WHERE pool = 'workers' AND ended_at IS NULL) AS workers
FROM fleet f WHERE f.id = 1;

-- name: next_instant
SELECT min(at) AS at FROM (
    SELECT min(due_at) AS at FROM standing WHERE asked = 0 AND due_at IS NOT NULL AND due_at > :now
    UNION ALL SELECT min(retry_at) FROM wake WHERE state = 'waiting' AND retry_at IS NOT NULL AND retry_at > :now
    UNION ALL SELECT min(ring_at) FROM item
        WHERE ring_at IS NOT NULL AND asked IS NULL AND closed_at IS NULL AND ring_at > :now
    UNION ALL SELECT min(not_before) FROM item WHERE kind = 'task' AND state IN ('pending', 'failed')
        AND waits_for = 0 AND behind = 0 AND asked IS NULL AND not_before IS NOT NULL AND not_before > :now
    UNION ALL SELECT min(until) FROM pause WHERE until IS NOT NULL
    UNION ALL SELECT min(next_at) FROM recurrence
    -- Leases end by the database's clock, whatever the caller's says.
    UNION ALL (SELECT greatest(:now, :now + lease_until - lease_clock()) FROM run WHERE state = 'running'
        ORDER BY lease_until LIMIT 1)
) AS instants;

-- name: oldest_unclaimed
SELECT min(admitted_at) AS at FROM run WHERE state = 'admitted';

-- name: slot_row
SELECT id FROM wake WHERE agent = :agent AND slot = :slot;
