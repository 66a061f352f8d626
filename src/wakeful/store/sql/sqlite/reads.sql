-- name: live_agents
SELECT name, address, version, declaration, overrides, enabled, removed_at FROM agent
WHERE removed_at IS NULL OR :removed ORDER BY name;

-- name: list_items
SELECT id, kind, state, agent, role, sender, origin, subject, body, type, priority, ring, fingerprint, shown, asked,
    unanswered, held_by, attempts, max_retries, key, source, external_id, not_before, result, error, created_at,
    closed_at, by_run
FROM item
WHERE id > :after AND (:agent IS NULL OR agent = :agent) AND (:kind IS NULL OR kind = :kind)
    AND (:state IS NULL OR state = :state)
ORDER BY id LIMIT :limit;

-- name: list_runs
SELECT r.id, r.agent, r.wake, r.cause, r.subject, r.state, r.epoch, r.attempt, r.node, r.outcome, r.reason, r.summary,
    r.admitted_at, r.started_at, r.ended_at, r.spent_usd, r.spent_tokens,
    (SELECT json_group_array(s.item) FROM run_item s WHERE s.run = r.id) AS shown,
    (SELECT json_group_array(t.item) FROM attempt t WHERE t.run = r.id) AS tasks
FROM run r
WHERE r.id > :after AND (:agent IS NULL OR r.agent = :agent) AND (:open IS NULL OR (r.ended_at IS NULL) = :open)
ORDER BY r.id LIMIT :limit;

-- name: one_run
SELECT r.id, r.agent, r.wake, r.cause, r.subject, r.state, r.epoch, r.attempt, r.node, r.outcome, r.reason, r.summary,
    r.admitted_at, r.started_at, r.ended_at, r.spent_usd, r.spent_tokens,
    (SELECT json_group_array(s.item) FROM run_item s WHERE s.run = r.id) AS shown,
    (SELECT json_group_array(t.item) FROM attempt t WHERE t.run = r.id) AS tasks
FROM run r WHERE r.id = :run;

-- name: open_runs
SELECT r.id, r.agent, r.wake, r.cause, r.subject, r.state, r.epoch, r.attempt, r.node, r.outcome, r.reason, r.summary,
    r.admitted_at, r.started_at, r.ended_at, r.spent_usd, r.spent_tokens,
    (SELECT json_group_array(s.item) FROM run_item s WHERE s.run = r.id) AS shown,
    (SELECT json_group_array(t.item) FROM attempt t WHERE t.run = r.id) AS tasks
FROM run r WHERE r.ended_at IS NULL AND r.id > :after AND (:agent IS NULL OR r.agent = :agent)
ORDER BY r.id LIMIT :limit;

-- name: list_wakes
SELECT w.id, w.agent, w.role, w.cause, w.subject, w.sender, w.reason, w.item, w.task, w.source, w.by_run, w.root,
    w.depth, w.lineage_usd, w.slot, w.attempt, w.charged, w.requested_at, w.state, w.guard, w.verdict, w.retry_at,
    w.joined, (SELECT max(r.id) FROM run r WHERE r.wake = w.id) AS run
FROM wake w
WHERE w.id > :after AND (:agent IS NULL OR w.agent = :agent) AND (:state IS NULL OR w.state = :state)
ORDER BY w.id LIMIT :limit;

-- name: list_events
SELECT id, kind, at, agent, wake, run, item, fields FROM event WHERE id > :after ORDER BY id LIMIT :limit;

-- name: agent_events
SELECT id, kind, at, agent, wake, run, item, fields FROM event
WHERE agent = :agent AND id > :after ORDER BY id LIMIT :limit;
