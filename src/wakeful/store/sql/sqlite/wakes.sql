-- name: facts
-- Every scalar that a guard reads, in one look; each part is one probe of an index.
SELECT
    s.state, s.hits, s.idle_streak, s.failure_streak, s.due_at, s.epoch, s.beat, s.gates, s.costs, s.last_outcome,
    s.last_ended_at, s.agent,
    p.scope AS pause_scope, p.owner AS pause_owner, p.reason AS pause_reason, p.since AS pause_since,
    p.until AS pause_until,
    (SELECT count(*) FROM wake w WHERE w.by_run = :by_run AND w.state IN ('waiting', 'admitted')
        AND w.cause = 'peer' AND w.id <> :wake) AS wakes_by_run,
    (SELECT max(w.decided_at) FROM wake w WHERE w.agent = :target AND w.cause = 'peer' AND w.charged = 1
        AND w.id <> :wake) AS last_peer_wake_at,
    (SELECT amount FROM total WHERE scope = :agent_total AND day = :day AND measure = 'wakes') AS wakes_today,
    (SELECT amount FROM total WHERE scope = :pair_total AND day = :day AND measure = 'wakes') AS pair_wakes_today,
    (SELECT amount FROM total WHERE scope = :agent_total AND day = :day AND measure = 'ms') AS ms_today,
    (SELECT amount FROM total WHERE scope = :agent_total AND day = :day AND measure = 'usd') AS usd_today,
    (SELECT amount FROM total WHERE scope = :agent_total AND day = :day AND measure = 'tokens') AS tokens_today,
    (SELECT amount FROM total WHERE scope = 'fleet' AND day = :fleet_day AND measure = 'usd') AS fleet_usd,
    (SELECT amount FROM total WHERE scope = 'fleet' AND day = :fleet_day AND measure = 'tokens') AS fleet_tokens,
    (SELECT count(*) FROM (SELECT 1 FROM run r WHERE r.agent = :agent AND r.admitted_at > :burst_since
        AND r.cause IN ('timer', 'peer', 'news') AND r.state <> 'void' LIMIT :burst)) AS burst_starts,
    (SELECT r.id FROM run r WHERE r.agent = :agent AND r.ended_at IS NULL) AS open_run,
    (SELECT count(*) FROM run r WHERE r.pool = :pool AND r.ended_at IS NULL) AS slots_open,
    -- Whoever waits longer for a slot of this pool is served first.
    (SELECT count(*) FROM (SELECT 1 FROM wake w WHERE w.state = 'waiting' AND w.guard = 'slots' AND w.pool = :pool
        AND w.requested_at < :requested_at AND w.id <> :wake AND coalesce(w.agent, '') <> :target
        LIMIT :slots)) AS slots_ahead,
    EXISTS (SELECT 1 FROM item i WHERE i.agent IN (:agent, :address) AND i.ring <> 'silent' AND i.ring_at <= :now
        AND i.closed_at IS NULL AND (i.shown IS NULL OR i.shown <> i.fingerprint OR i.unanswered > 0)
        AND i.held_by IS NULL) AS rings,
    t.state AS task_state, t.waits_for AS task_waits_for, t.not_before AS task_not_before, t.error AS task_error
FROM standing s
LEFT JOIN (SELECT scope, owner, reason, since, until FROM pause
    WHERE scope IN ('fleet', :pause_agent, :pause_address, :pause_source) AND (until IS NULL OR until > :now)
    ORDER BY until IS NULL DESC, until DESC, scope LIMIT 1) p ON 1
LEFT JOIN item t ON t.id = :task
WHERE s.agent = :agent;

-- name: candidates
-- Who may take a wake that names an address: the idle first, then whoever has rested longest.
SELECT a.name, a.address, a.version, a.declaration, a.overrides, a.enabled, a.removed_at
FROM agent a JOIN standing s ON s.agent = a.name
WHERE a.address = :target AND a.removed_at IS NULL
ORDER BY EXISTS (SELECT 1 FROM run r WHERE r.agent = a.name AND r.ended_at IS NULL),
    coalesce(s.last_ended_at, 0), a.name
LIMIT :limit;

-- name: role_candidates
SELECT a.name, a.address, a.version, a.declaration, a.overrides, a.enabled, a.removed_at
FROM role o JOIN agent a ON a.name = o.agent JOIN standing s ON s.agent = a.name
WHERE o.role = :role AND a.removed_at IS NULL
ORDER BY EXISTS (SELECT 1 FROM run r WHERE r.agent = a.name AND r.ended_at IS NULL),
    coalesce(s.last_ended_at, 0), a.name
LIMIT :limit;

-- name: address_row
SELECT name FROM address WHERE name = :name;

-- name: waiting_like
SELECT id FROM wake WHERE coalesce(agent, '') = coalesce(:agent, '') AND cause = :cause AND subject = :subject
    AND coalesce(task, 0) = coalesce(:task, 0) AND slot = :slot AND state = 'waiting';

-- name: waiting_wake
SELECT id, agent, role, cause, subject, sender, reason, item, task, source, by_run, root, depth, lineage_usd, slot,
    attempt, charged, requested_at
FROM wake WHERE id = :wake AND state = 'waiting';

-- name: sweep_item
-- No beat will ever show it: the sweep will.
UPDATE item SET asked = NULL, ring = 'news', ring_at = :ring_at
WHERE id = :item AND closed_at IS NULL AND (SELECT timerless FROM address WHERE name = item.agent);

-- name: ring_again
UPDATE item SET asked = NULL
WHERE agent IN (:agent, :address) AND ring <> 'silent' AND closed_at IS NULL
    AND (shown IS NULL OR shown <> fingerprint OR unanswered > 0);

-- name: put_wake
INSERT INTO wake (agent, role, cause, subject, state, sender, reason, item, task, source, by_run, root, depth,
    lineage_usd, slot, attempt, charged, joined, guard, verdict, retry_at, rank, pool, requested_at, decided_at)
VALUES (:agent, :role, :cause, :subject, :state, :sender, :reason, :item, :task, :source, :by_run, :root, :depth,
    :lineage_usd, :slot, :attempt, :charged, :joined, :guard, :verdict, :retry_at, :rank, :pool, :requested_at,
    :decided_at)
RETURNING id;

-- name: decide_wake
UPDATE wake SET state = :state, charged = :charged, guard = :guard, verdict = :verdict, retry_at = :retry_at,
    decided_at = :decided_at WHERE id = :wake;

-- name: lineage
SELECT w.id, w.root, w.depth, w.lineage_usd, r.spent_usd FROM run r JOIN wake w ON w.id = r.wake WHERE r.id = :run;

-- name: ask_standing
UPDATE standing SET asked = :asked WHERE agent = :agent;

-- name: add_total
INSERT INTO total (scope, day, measure, amount) VALUES (:scope, :day, :measure, :amount)
ON CONFLICT (scope, day, measure) DO UPDATE SET amount = amount + :amount;

-- name: total_row
SELECT amount FROM total WHERE scope = :scope AND day = :day AND measure = :measure;

-- name: open_run
INSERT INTO run (agent, wake, cause, subject, pool, state, version, position, hits, beat, attempt, charged, day,
    fleet_day, reserved_usd, reserved_tokens, admitted_at)
VALUES (:agent, :wake, :cause, :subject, :pool, 'admitted', :version, :position, :hits, :beat, :attempt, :charged,
    :day, :fleet_day, :reserved_usd, :reserved_tokens, :now)
RETURNING id;

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
WHERE ring <> 'silent' AND asked IS NULL AND closed_at IS NULL AND ring_at <= :now
    AND (shown IS NULL OR shown <> fingerprint OR unanswered > 0)
ORDER BY ring_at LIMIT :limit;

-- name: slots_open
SELECT
    (SELECT count(*) FROM run WHERE pool = 'sessions' AND ended_at IS NULL) AS sessions,
    (SELECT count(*) FROM run WHERE pool = 'workers' AND ended_at IS NULL) AS workers;

-- name: next_instant
SELECT min(at) AS at FROM (
    SELECT min(due_at) AS at FROM standing WHERE asked = 0 AND due_at IS NOT NULL AND due_at > :now
    UNION ALL SELECT min(retry_at) FROM wake WHERE state = 'waiting' AND retry_at IS NOT NULL AND retry_at > :now
    UNION ALL SELECT min(ring_at) FROM item
        WHERE ring <> 'silent' AND asked IS NULL AND closed_at IS NULL AND ring_at > :now
    UNION ALL SELECT min(not_before) FROM item WHERE kind = 'task' AND state IN ('pending', 'failed')
        AND waits_for = 0 AND asked IS NULL AND not_before IS NOT NULL AND not_before > :now
    UNION ALL SELECT min(until) FROM pause WHERE until IS NOT NULL
);

-- name: oldest_unclaimed
SELECT min(admitted_at) AS at FROM run WHERE state = 'admitted';

-- name: slot_row
SELECT id FROM wake WHERE agent = :agent AND slot = :slot;
