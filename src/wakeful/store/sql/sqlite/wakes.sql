-- name: facts
-- Every scalar that a guard reads, in one look; each part is one probe of an index.
SELECT
    s.state, s.hits, s.idle_streak, s.failure_streak, s.due_at, s.epoch, s.beat, s.gates, s.costs, s.last_outcome,
    s.last_ended_at, s.agent,
    (SELECT json_array(p.scope, p.owner, p.reason, p.since, p.until) FROM pause p
        WHERE p.scope = 'fleet' AND (p.until IS NULL OR p.until > :now) LIMIT 1) AS fleet_pause,
    (SELECT json_array(p.scope, p.owner, p.reason, p.since, p.until) FROM pause p
        WHERE p.scope = :pause_agent AND (p.until IS NULL OR p.until > :now) LIMIT 1) AS agent_pause,
    (SELECT json_array(p.scope, p.owner, p.reason, p.since, p.until) FROM pause p
        WHERE p.scope = :pause_address AND (p.until IS NULL OR p.until > :now) LIMIT 1) AS address_pause,
    (SELECT json_array(p.scope, p.owner, p.reason, p.since, p.until) FROM pause p
        WHERE p.scope = :pause_source AND (p.until IS NULL OR p.until > :now) LIMIT 1) AS source_pause,
    (SELECT count(*) FROM wake w WHERE w.by_run = :by_run AND w.cause = 'peer' AND w.id <> :wake
        AND (w.charged = 1 OR w.state = 'waiting')) AS wakes_by_run,
    -- Whose run that is, as it is declared now.
    (SELECT json_array(a.name, a.version) FROM run r JOIN agent a ON a.name = r.agent
        WHERE r.id = :by_run AND a.removed_at IS NULL) AS asks,
    -- The last in order, not the latest by its stamp: the clock may have been set back since.
    (SELECT r.admitted_at FROM run r WHERE r.address = :address AND r.charged = 1 AND r.state <> 'void'
        AND r.wake <> :wake ORDER BY r.id DESC LIMIT 1) AS last_peer_wake_at,
    own.wakes AS wakes_today, own.ms AS ms_today, own.usd AS usd_today, own.tokens AS tokens_today,
    pair.wakes AS pair_wakes_today, whole.usd AS fleet_usd, whole.tokens AS fleet_tokens,
    (SELECT count(*) FROM run r WHERE r.agent = :agent AND r.admitted_at > :burst_since AND r.admitted_at < :burst_until
        AND (r.cause IN ('timer', 'peer') OR r.cause = 'news') AND r.state <> 'void') AS burst_starts,
    (SELECT r.id FROM run r WHERE r.agent = :agent AND r.ended_at IS NULL) AS busy_with,
    (SELECT count(*) FROM run r WHERE r.pool = :pool AND r.ended_at IS NULL) AS slots_open,
    -- Whoever waits longer for a slot of this pool is served first.
    CASE WHEN EXISTS (SELECT 1 FROM wake w WHERE w.state = 'waiting' AND w.guard = 'slots' AND w.pool = :pool)
        THEN (SELECT count(*) FROM (SELECT 1 FROM wake w WHERE w.state = 'waiting' AND w.guard = 'slots'
            AND w.pool = :pool AND coalesce(w.agent, w.role) <> :place
            -- An agent's better wake stands where its oldest one does.
            AND w.requested_at < min(:requested_at, coalesce((SELECT min(v.requested_at) FROM wake v
                WHERE v.state = 'waiting' AND v.guard = 'slots' AND v.pool = :pool
                AND coalesce(v.agent, v.role) = :place), :requested_at))
            LIMIT :slots))
        ELSE 0 END AS slots_ahead,
    EXISTS (SELECT 1 FROM item i WHERE i.agent = :agent AND i.ring_at IS NOT NULL
        AND (i.ring_at <= :now OR i.asked IS NOT NULL) AND (i.not_before IS NULL OR i.not_before <= :now)
        AND i.closed_at IS NULL AND (i.shown IS NULL OR i.shown <> i.fingerprint OR i.unanswered > 0)
        AND i.held_by IS NULL)
    OR (:address <> :agent AND EXISTS (SELECT 1 FROM item i WHERE i.agent = :address AND i.ring_at IS NOT NULL
        AND (i.ring_at <= :now OR i.asked IS NOT NULL) AND (i.not_before IS NULL OR i.not_before <= :now)
        AND i.closed_at IS NULL
        AND (i.shown IS NULL OR i.shown <> i.fingerprint OR i.unanswered > 0) AND i.held_by IS NULL)) AS rings,
    (SELECT r.day FROM run r WHERE r.wake = :wake AND r.charged = 1 AND r.state <> 'void' LIMIT 1) AS charged_day,
    t.state AS task_state, t.waits_for AS task_waits_for, t.not_before AS task_not_before,
    t.attempts AS task_attempts,
    CASE WHEN t.key IS NULL THEN NULL ELSE coalesce(
        (SELECT min(held.id) FROM item held WHERE held.key = t.key AND held.key IS NOT NULL AND held.held_by IS NOT NULL AND held.id <> t.id),
        (SELECT min(s.item) FROM attempt s JOIN item left_over ON left_over.id = s.item
            WHERE s.stop_by IS NOT NULL AND s.ended_at IS NULL AND left_over.key = t.key),
        (SELECT min(older.id) FROM item older WHERE older.key = t.key AND older.closed_at IS NULL AND older.id < t.id)) END
        AS task_behind,
    -- Of what has waited: what came meanwhile, and has a better place in the same queue.
    CASE WHEN :wake > 0 AND t.id IS NOT NULL THEN (SELECT better.id FROM (SELECT n.id, n.place, n.key, n.source FROM item n
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
FROM standing s
LEFT JOIN total own ON own.scope = :agent_total AND own.day = :day
LEFT JOIN total pair ON pair.scope = :pair_total AND pair.day = :day
LEFT JOIN total whole ON whole.scope = 'fleet' AND whole.day = :fleet_day
LEFT JOIN item t ON t.id = :task
WHERE s.agent = :agent;

-- name: candidates
-- Who may take a wake that names an address: the idle first, then whoever has rested longest.
SELECT a.name, a.address, a.version, a.declaration, a.overrides, a.enabled, a.removed_at,
    EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'agent:' || a.name) AS paused,
    EXISTS (SELECT 1 FROM run r WHERE r.agent = a.name AND r.ended_at IS NULL) AS busy
FROM agent a JOIN standing s ON s.agent = a.name
WHERE a.address = :target AND a.removed_at IS NULL AND a.enabled
ORDER BY paused, busy, coalesce(s.last_ended_at, 0), a.name;

-- name: role_candidates
SELECT a.name, a.address, a.version, a.declaration, a.overrides, a.enabled, a.removed_at,
    EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'agent:' || a.name) AS paused,
    EXISTS (SELECT 1 FROM run r WHERE r.agent = a.name AND r.ended_at IS NULL) AS busy
FROM role o JOIN agent a ON a.name = o.agent JOIN standing s ON s.agent = a.name
WHERE o.role = :role AND a.removed_at IS NULL AND a.enabled
ORDER BY paused, busy, coalesce(s.last_ended_at, 0), a.name;

-- name: sender_address
SELECT address FROM agent WHERE name = :name;

-- name: address_row
SELECT name FROM address WHERE name = :name;

-- name: retry_spend
-- Money came back: the agent's own wakes, and the oldest of the others. Who is about to be let go anyway is left alone.
UPDATE wake SET retry_at = :now, offered = :now
WHERE id IN (SELECT id FROM wake WHERE state = 'waiting' AND guard = 'spend' AND (retry_at IS NULL OR retry_at > :later)
    ORDER BY agent IN (:agent, :address) DESC,
    requested_at LIMIT :limit);

-- name: pass_spend
-- Whoever is decided because money came back passes the offer on, to the next who have not been decided since then.
UPDATE wake SET retry_at = :now, offered = (SELECT min(o.offered, :now) FROM wake o WHERE o.id = :wake)
WHERE id IN (SELECT n.id FROM wake o CROSS JOIN wake n WHERE o.id = :wake AND o.offered IS NOT NULL
    AND n.state = 'waiting' AND n.guard = 'spend' AND n.retry_at > :later AND n.decided_at < min(o.offered, :now)
    ORDER BY n.requested_at LIMIT :limit);

-- name: retry_joined
UPDATE wake SET retry_at = :now WHERE id = :wake AND guard IS NULL AND retry_at > :now;

-- name: waiting_like
SELECT id, guard, verdict, retry_at FROM wake WHERE coalesce(agent, '') = coalesce(:agent, '') AND cause = :cause AND subject = :subject
    AND coalesce(task, 0) = coalesce(:task, 0) AND slot = :slot AND state = 'waiting';

-- name: waiting_wake
SELECT id, agent, role, cause, subject, sender, reason, item, task, source, by_run, root, depth, lineage_usd, slot,
    attempt, charged, requested_at
FROM wake WHERE id = :wake AND state = 'waiting';

-- name: next_joined
-- The oldest that joined a wake to which a guard objected for its sender's sake, and may have no objection to this one.
SELECT id, agent, role, cause, subject, sender, reason, item, task, source, by_run, root, depth, lineage_usd, slot,
    attempt, charged, requested_at
FROM wake WHERE joined = :wake AND CASE :guard WHEN 'wakes_per_run' THEN by_run IS NOT :by_run
    WHEN 'wakes_per_pair' THEN sender IS NOT :sender ELSE depth < :depth END
ORDER BY id LIMIT 1;

-- name: wait_instead
UPDATE wake SET state = 'waiting', joined = NULL, guard = NULL, verdict = '', retry_at = :now WHERE id = :wake;

-- name: join_instead
UPDATE wake SET joined = :next WHERE joined = :wake AND CASE :guard WHEN 'wakes_per_run' THEN by_run IS NOT :by_run
    WHEN 'wakes_per_pair' THEN sender IS NOT :sender ELSE depth < :depth END;

-- name: sweep_item
-- No beat will ever show it: the sweep will.
UPDATE item SET asked = NULL, ring = 'silent', ring_at = max(:ring_at, coalesce(not_before, 0))
WHERE id = :item AND closed_at IS NULL AND (SELECT timerless FROM address WHERE name = item.agent);

-- name: sweep_joined
-- And what others asked for with it.
UPDATE item SET asked = NULL, ring = 'silent', ring_at = max(:ring_at, coalesce(not_before, 0))
WHERE id IN (SELECT w.item FROM wake w WHERE w.joined = :wake AND w.item IS NOT NULL) AND closed_at IS NULL
    AND asked IN (SELECT w.id FROM wake w WHERE w.joined = :wake) AND (SELECT timerless FROM address WHERE name = item.agent);

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

-- name: put_wake
INSERT INTO wake (agent, role, cause, subject, state, sender, reason, item, task, source, by_run, root, depth,
    lineage_usd, slot, attempt, charged, joined, guard, verdict, retry_at, rank, pool, requested_at, decided_at)
VALUES (:agent, :role, :cause, :subject, :state, :sender, :reason, :item, :task, :source, :by_run, :root, :depth,
    :lineage_usd, :slot, :attempt, :charged, :joined, :guard, :verdict, :retry_at, :rank, :pool, :requested_at,
    :decided_at);

-- name: decide_wake
UPDATE wake SET state = :state, charged = :charged, guard = :guard, verdict = :verdict, retry_at = :retry_at,
    decided_at = :decided_at, offered = NULL WHERE id = :wake;

-- name: lineage
-- With what all that came of the same root has cost by now; of what is under way, what was set aside for it. What it took may stand deeper.
SELECT w.id, w.root, max(w.depth, coalesce((SELECT max(i.depth) FROM attempt a JOIN item i ON i.id = a.item WHERE a.run = r.id), 0)) AS depth,
    coalesce((SELECT sum(CASE WHEN l.ended_at IS NULL THEN l.reserved_usd ELSE l.spent_usd END) FROM run l
        WHERE l.wake = coalesce(w.root, w.id)), 0) + coalesce((SELECT sum(CASE WHEN l.ended_at IS NULL THEN l.reserved_usd ELSE l.spent_usd END)
        FROM wake v JOIN run l ON l.wake = v.id WHERE v.root = coalesce(w.root, w.id)), 0) AS cost
FROM run r JOIN wake w ON w.id = r.wake WHERE r.id = :run;

-- name: asked_standing
SELECT agent FROM standing WHERE agent = :agent AND asked = 1;

-- name: asked_item
SELECT id FROM item WHERE id = :item AND asked IS NOT NULL;

-- name: ask_standing
UPDATE standing SET asked = :asked WHERE agent = :agent;

-- name: skip_beat
UPDATE standing SET idle_streak = :idle_streak, due_at = :due_at WHERE agent = :agent;

-- name: check_again
-- A beat that a CHECK held back waits for nothing but its due instant, wherever that has moved.
UPDATE wake SET retry_at = :at
WHERE state = 'waiting' AND coalesce(agent, '') = :agent AND cause = 'timer' AND subject = 'beat'
    AND coalesce(task, 0) = 0 AND slot = '' AND guard = 'check';

-- name: add_total
INSERT INTO total (scope, day, wakes, ms, usd, tokens)
VALUES (:scope, :day, max(:wakes, 0), max(:ms, 0), max(:usd, 0), max(:tokens, 0))
ON CONFLICT (scope, day) DO UPDATE SET
    wakes = wakes + :wakes, ms = ms + :ms, usd = usd + :usd, tokens = tokens + :tokens;

-- name: total_row
SELECT wakes, ms, usd, tokens FROM total WHERE scope = :scope AND day = :day;

-- name: totals
-- Of these scopes, over a few days.
SELECT t.scope, t.day, t.wakes, t.ms, t.usd, t.tokens
FROM json_each(:scopes) j CROSS JOIN total t ON t.scope = j.value AND t.day >= :first AND t.day <= :last;

-- name: pair_rows
-- Of the pairs of that day those that begin or end with one address.
SELECT scope, wakes FROM total
WHERE day = :day AND scope >= 'pair:' AND scope < 'pair;' AND wakes > 0
    AND (substr(scope, 1, length(:begin)) = :begin OR substr(scope, -length(:end)) = :end);

-- name: open_run
INSERT INTO run (agent, address, wake, cause, subject, pool, state, version, position, hits, beat, attempt, charged, pair, day,
    fleet_day, reserved_usd, reserved_tokens, admitted_at)
VALUES (:agent, :address, :wake, :cause, :subject, :pool, 'admitted', :version, :position, :hits, :beat, :attempt, :charged,
    :pair, :day, :fleet_day, :reserved_usd, :reserved_tokens, :now);

-- name: due_standings
SELECT agent, due_at FROM standing WHERE asked = 0 AND due_at IS NOT NULL AND due_at <= :now
ORDER BY due_at LIMIT :limit;

-- name: due_wakes
SELECT id, agent, role, cause, subject, sender, reason, item, task, source, by_run, root, depth, lineage_usd, slot,
    attempt, charged, requested_at
FROM wake WHERE state = 'waiting' AND retry_at IS NOT NULL AND retry_at <= :now ORDER BY retry_at LIMIT :limit;

-- name: wakes_for_slots
SELECT id, agent, role, cause, subject, sender, reason, item, task, source, by_run, root, depth, lineage_usd, slot,
    attempt, charged, requested_at
FROM wake WHERE state = 'waiting' AND guard = 'slots' AND pool = :pool ORDER BY requested_at, id LIMIT :limit;

-- name: ringing_items
SELECT id, agent, ring, sender, source, by_run, ring_at FROM item
WHERE ring_at IS NOT NULL AND asked IS NULL AND closed_at IS NULL AND ring_at <= :now
    AND (shown IS NULL OR shown <> fingerprint OR unanswered > 0)
ORDER BY ring_at LIMIT :limit;

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
    UNION ALL SELECT min(lease_until) FROM run WHERE state = 'running'
);

-- name: oldest_unclaimed
SELECT min(admitted_at) AS at FROM run WHERE state = 'admitted';

-- name: slot_row
SELECT id FROM wake WHERE agent = :agent AND slot = :slot;
