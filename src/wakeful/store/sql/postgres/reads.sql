-- name: live_agents
SELECT name, address, version, declaration, overrides, enabled, removed_at FROM agent
WHERE removed_at IS NULL OR :removed = 1 ORDER BY name;

-- name: item_rows
-- Of these items, in this order; which ones and in which order is said by one of the queries below.
SELECT i.id, i.kind, i.state, i.agent, i.role, i.sender, i.origin, i.subject, i.body, i.type, i.priority, i.ring,
    i.fingerprint, i.shown, i.asked, i.unanswered, i.held_by, i.attempts, i.max_retries, i.key, i.source,
    i.external_id, i.not_before, i.result, i.error, i.created_at, i.closed_at, i.by_run, i.reply_to, i.thread,
    i.metadata, i.payload, i.timeout, i.tags, i.dedupe, i.waits_for
FROM json_array_elements_text(:ids::json) WITH ORDINALITY AS j (value, key)
JOIN item i ON i.id = j.value::bigint ORDER BY j.key;

-- name: list_items
SELECT id FROM item
WHERE id > :after AND id < :before AND (:agent::text IS NULL OR agent = :agent::text) AND (:kind::text IS NULL OR kind = :kind::text)
    AND (:state::text IS NULL OR state = :state::text)
    AND (:sender::text IS NULL OR sender = :sender::text) AND (:type::text IS NULL OR type = :type::text)
    AND priority >= :priority
ORDER BY id LIMIT :limit;

-- name: latest_items
SELECT id FROM item
WHERE id > :after AND id < :before AND (:agent::text IS NULL OR agent = :agent::text) AND (:kind::text IS NULL OR kind = :kind::text)
    AND (:state::text IS NULL OR state = :state::text)
    AND (:sender::text IS NULL OR sender = :sender::text) AND (:type::text IS NULL OR type = :type::text)
    AND priority >= :priority
ORDER BY id DESC LIMIT :limit;

-- name: inbox_items
-- What is open of it and what is past have each their own index.
SELECT id FROM item
WHERE agent = :agent AND kind = 'message' AND closed_at IS NULL AND id > :after AND id < :before AND (:state::text IS NULL OR state = :state::text)
    AND (:sender::text IS NULL OR sender = :sender::text) AND (:type::text IS NULL OR type = :type::text)
    AND priority >= :priority
UNION ALL
SELECT id FROM item
WHERE agent = :agent AND kind = 'message' AND closed_at IS NOT NULL AND id > :after AND id < :before AND (:state::text IS NULL OR state = :state::text)
    AND (:sender::text IS NULL OR sender = :sender::text) AND (:type::text IS NULL OR type = :type::text)
    AND priority >= :priority
ORDER BY id LIMIT :limit;

-- name: latest_inbox_items
SELECT id FROM item
WHERE agent = :agent AND kind = 'message' AND closed_at IS NULL AND id > :after AND id < :before AND (:state::text IS NULL OR state = :state::text)
    AND (:sender::text IS NULL OR sender = :sender::text) AND (:type::text IS NULL OR type = :type::text)
    AND priority >= :priority
UNION ALL
SELECT id FROM item
WHERE agent = :agent AND kind = 'message' AND closed_at IS NOT NULL AND id > :after AND id < :before AND (:state::text IS NULL OR state = :state::text)
    AND (:sender::text IS NULL OR sender = :sender::text) AND (:type::text IS NULL OR type = :type::text)
    AND priority >= :priority
ORDER BY id DESC LIMIT :limit;

-- name: open_items
SELECT id FROM item
WHERE agent = :agent AND kind = 'message' AND closed_at IS NULL AND id > :after AND id < :before
    AND (:sender::text IS NULL OR sender = :sender::text) AND (:type::text IS NULL OR type = :type::text)
    AND priority >= :priority
ORDER BY id LIMIT :limit;

-- name: latest_open_items
SELECT id FROM item
WHERE agent = :agent AND kind = 'message' AND closed_at IS NULL AND id > :after AND id < :before
    AND (:sender::text IS NULL OR sender = :sender::text) AND (:type::text IS NULL OR type = :type::text)
    AND priority >= :priority
ORDER BY id DESC LIMIT :limit;

-- name: all_open_items
-- What is open is little, however much is past.
SELECT id FROM item
WHERE kind = 'message' AND closed_at IS NULL AND id > :after AND id < :before
    AND (:sender::text IS NULL OR sender = :sender::text) AND (:type::text IS NULL OR type = :type::text)
    AND priority >= :priority;

-- name: thread_items
-- Its first message, which names none, and those that name it.
SELECT id FROM item WHERE id = :thread AND thread IS NULL AND id > :after AND id < :before AND (:agent::text IS NULL OR agent = :agent::text) AND (:kind::text IS NULL OR kind = :kind::text)
    AND (:state::text IS NULL OR state = :state::text)
    AND (:sender::text IS NULL OR sender = :sender::text) AND (:type::text IS NULL OR type = :type::text)
    AND priority >= :priority
UNION ALL
SELECT id FROM item WHERE thread = :thread AND id > :after AND id < :before AND (:agent::text IS NULL OR agent = :agent::text) AND (:kind::text IS NULL OR kind = :kind::text)
    AND (:state::text IS NULL OR state = :state::text)
    AND (:sender::text IS NULL OR sender = :sender::text) AND (:type::text IS NULL OR type = :type::text)
    AND priority >= :priority;

-- name: stuck_items
-- Seen as they are by a run that has ended, and neither held nor about to be shown once more.
SELECT i.id, count(*) AS runs, min(r.started_at) AS first_shown_at, max(r.id) AS last_run
FROM item i JOIN run_item s ON s.item = i.id JOIN run r ON r.id = s.run AND r.state = 'ended'
WHERE i.kind = 'message' AND i.closed_at IS NULL AND i.agent >= :first AND i.agent <= :last
    AND i.held_by IS NULL AND i.shown = i.fingerprint
    -- Runs that saw it as it is now; of its own edits the last one knows.
    AND (s.fingerprint = i.fingerprint OR s.run = (SELECT max(o.run) FROM run_item o WHERE o.item = i.id))
    AND (i.unanswered = 0 OR (i.asked IS NULL AND i.ring = 'silent')
        OR (i.asked IS NOT NULL AND NOT EXISTS (SELECT 1 FROM wake w LEFT JOIN wake j ON j.id = w.joined
            WHERE w.id = i.asked AND (w.state = 'waiting' OR j.state = 'waiting'))))
GROUP BY i.id ORDER BY min(r.started_at), i.id LIMIT :limit;

-- name: mirrored_sources
SELECT DISTINCT source, agent FROM item WHERE external_id IS NOT NULL AND closed_at IS NULL
ORDER BY source, agent;

-- name: source_rows
SELECT source, agent, node, outage, since FROM source ORDER BY agent, source;

-- name: keyed_wake
SELECT id, agent, role, cause, subject, sender, reason, item, task, source, by_run, root, depth, lineage_usd, slot,
    attempt, charged, requested_at
FROM wake WHERE id = (SELECT min(id) FROM wake
    WHERE source = :key AND substr(source, 1, 4) = 'key:' AND subject = :subject);

-- name: wakes_from
-- Itself, and those that came of it.
SELECT id FROM wake WHERE id = :root UNION ALL SELECT id FROM wake WHERE root = :root ORDER BY id LIMIT :limit;

-- name: shown_in
SELECT s.item, max(s.run) AS run FROM json_array_elements_text(:ids::json) AS j (value)
JOIN run_item s ON s.item = j.value::bigint GROUP BY s.item;

-- name: tainted_run
-- What it was shown, what it has among its tasks, and what it has read besides.
SELECT EXISTS (SELECT 1 FROM run_item s JOIN item i ON i.id = s.item WHERE s.run = :run AND i.origin = 'external')
    OR EXISTS (SELECT 1 FROM attempt t JOIN item i ON i.id = t.item WHERE t.run = :run AND i.origin = 'external')
    OR EXISTS (SELECT 1 FROM event e WHERE e.run = :run AND e.kind = 'tainted') AS tainted;

-- name: run_rows
-- Of these runs, in this order; which ones and in which order is said by one of the queries below.
SELECT r.id, r.agent, r.wake, r.cause, r.subject, r.state, r.epoch, r.attempt, r.node, r.outcome, r.reason, r.summary,
    r.admitted_at, r.started_at, r.ended_at, r.spent_usd, r.spent_tokens, r.estimated,
    (SELECT coalesce(json_agg(s.item ORDER BY s.item), '[]')::text FROM run_item s WHERE s.run = r.id) AS shown,
    (SELECT coalesce(json_agg(t.item ORDER BY t.item), '[]')::text FROM attempt t WHERE t.run = r.id) AS tasks
FROM json_array_elements_text(:ids::json) WITH ORDINALITY AS j (value, key)
JOIN run r ON r.id = j.value::bigint ORDER BY j.key;

-- name: list_runs
SELECT id FROM run WHERE id > :after AND (:open::int IS NULL OR (ended_at IS NULL) = (:open::int = 1)) ORDER BY id LIMIT :limit;

-- name: latest_runs
SELECT id FROM run WHERE id > :after AND id < :before AND (:open::int IS NULL OR (ended_at IS NULL) = (:open::int = 1))
ORDER BY id DESC LIMIT :limit;

-- name: agent_runs
SELECT id FROM run WHERE agent = :agent AND id > :after AND (:open::int IS NULL OR (ended_at IS NULL) = (:open::int = 1))
ORDER BY id LIMIT :limit;

-- name: latest_agent_runs
SELECT id FROM run WHERE agent = :agent AND id > :after AND id < :before
    AND (:open::int IS NULL OR (ended_at IS NULL) = (:open::int = 1))
ORDER BY id DESC LIMIT :limit;

-- name: open_runs
-- There are no more of them than slots.
SELECT id FROM run
WHERE ended_at IS NULL AND id > :after AND id < :before AND (:agent::text IS NULL OR agent = :agent::text);

-- name: open_runs_of
SELECT r.id FROM json_array_elements_text(:names::json) AS j (value) JOIN run r ON r.agent = j.value
WHERE r.ended_at IS NULL;

-- name: wake_rows
SELECT w.id, w.agent, w.role, w.cause, w.subject, w.sender, w.reason, w.item, w.task, w.source, w.by_run, w.root,
    w.depth, w.lineage_usd, w.slot, w.attempt, w.charged, w.requested_at, w.state, w.guard, w.verdict, w.retry_at,
    w.joined, (SELECT max(r.id) FROM run r WHERE r.wake = w.id) AS run,
    (SELECT coalesce(json_agg(r.id ORDER BY r.id), '[]')::text FROM run r WHERE r.wake = w.id) AS runs
FROM json_array_elements_text(:ids::json) WITH ORDINALITY AS j (value, key)
JOIN wake w ON w.id = j.value::bigint ORDER BY j.key;

-- name: list_wakes
SELECT id FROM wake WHERE id > :after AND (:state::text IS NULL OR state = :state::text) ORDER BY id LIMIT :limit;

-- name: latest_wakes
SELECT id FROM wake WHERE id > :after AND id < :before AND (:state::text IS NULL OR state = :state::text)
ORDER BY id DESC LIMIT :limit;

-- name: agent_wakes
SELECT id FROM wake WHERE agent = :agent AND id > :after AND (:state::text IS NULL OR state = :state::text)
ORDER BY id LIMIT :limit;

-- name: latest_agent_wakes
SELECT id FROM wake WHERE agent = :agent AND id > :after AND id < :before AND (:state::text IS NULL OR state = :state::text)
ORDER BY id DESC LIMIT :limit;

-- name: waiting_wakes
-- What waits is little, however much is past.
SELECT id FROM wake
WHERE state = 'waiting' AND id > :after AND id < :before AND (:agent::text IS NULL OR agent = :agent::text);

-- name: waiting_one_offs
-- Beats that were asked for by their instant, and whose time has not come.
SELECT agent, retry_at FROM wake
WHERE state = 'waiting' AND slot <> '' AND guard IS NULL AND retry_at IS NOT NULL
    AND (:agent::text IS NULL OR agent = :agent::text);

-- name: list_events
SELECT id, kind, at, agent, wake, run, item, fields FROM event
WHERE id > :after AND id <= :settled AND (:kinds::json IS NULL OR kind IN (SELECT json_array_elements_text(:kinds::json)))
ORDER BY id LIMIT :limit;

-- name: latest_events
SELECT id, kind, at, agent, wake, run, item, fields FROM event
WHERE id > :after AND id < :before AND id <= :settled AND (:kinds::json IS NULL OR kind IN (SELECT json_array_elements_text(:kinds::json)))
ORDER BY id DESC LIMIT :limit;

-- name: agent_events
SELECT id, kind, at, agent, wake, run, item, fields FROM event
WHERE agent = :agent AND id > :after AND id <= :settled AND (:kinds::json IS NULL OR kind IN (SELECT json_array_elements_text(:kinds::json)))
ORDER BY id LIMIT :limit;

-- name: latest_agent_events
SELECT id, kind, at, agent, wake, run, item, fields FROM event
WHERE agent = :agent AND id > :after AND id < :before AND id <= :settled
    AND (:kinds::json IS NULL OR kind IN (SELECT json_array_elements_text(:kinds::json)))
ORDER BY id DESC LIMIT :limit;

-- name: act_events
-- What a person did is a small part of what happened, and is found without the rest.
SELECT id FROM event
WHERE kind IN ('declared', 'removed', 'set', 'paused', 'resumed', 'stopped', 'task_changed')
    AND kind IN (SELECT json_array_elements_text(:kinds::json)) AND id > :after AND id < :before AND id <= :settled;

-- name: agent_act_events
SELECT id FROM event
WHERE kind IN ('declared', 'removed', 'set', 'paused', 'resumed', 'stopped', 'task_changed')
    AND kind IN (SELECT json_array_elements_text(:kinds::json)) AND id > :after AND id < :before AND id <= :settled
    AND agent = :agent;

-- name: event_rows
SELECT e.id, e.kind, e.at, e.agent, e.wake, e.run, e.item, e.fields
FROM json_array_elements_text(:ids::json) WITH ORDINALITY AS j (value, key)
JOIN event e ON e.id = j.value::bigint ORDER BY j.key;

-- name: reckonings
-- The stretches of events in which the clock was never set back, and that begin no later than that; the newest first.
SELECT event FROM reckoning WHERE at <= :at ORDER BY event DESC;

-- name: next_reckoning
SELECT min(event) AS event FROM reckoning WHERE event > :event;

-- name: event_from
SELECT id, at FROM event WHERE id >= :first AND id < :end ORDER BY id LIMIT 1;

-- name: last_event
SELECT id, at FROM event WHERE id >= :first AND id < :end ORDER BY id DESC LIMIT 1;

-- name: run_from
SELECT id, admitted_at FROM run WHERE id >= :first ORDER BY id LIMIT 1;

-- name: last_run
SELECT id, admitted_at FROM run WHERE id > 0 ORDER BY id DESC LIMIT 1;

-- name: lane_runs
-- Of one agent, the newest first; and the one before them, which may have lasted until then.
SELECT r.id, r.wake, r.state, r.cause, r.subject, r.outcome, r.summary, r.admitted_at, r.started_at, r.ended_at, w.sender, w.by_run
FROM (SELECT id FROM (SELECT id FROM run WHERE agent = :agent AND id >= :first AND id < :end ORDER BY id DESC LIMIT :limit) AS inside
    UNION ALL SELECT id FROM (SELECT id FROM run WHERE agent = :agent AND id < :first ORDER BY id DESC LIMIT 1) AS before) l
JOIN run r ON r.id = l.id JOIN wake w ON w.id = r.wake ORDER BY r.id DESC;

-- name: count_lane_runs
SELECT count(*) AS number FROM run WHERE agent = :agent AND id >= :first AND id < :end;

-- name: lane_wakes
-- Of a verdict what is drawn, and not the facts that it was reached by.
SELECT e.wake, e.run, e.at, json_build_array(e.told #> '{verdict,kind}', e.told #> '{verdict,guard}',
    e.told #> '{verdict,reason}', e.told #> '{verdict,until}', e.told -> 'cause', e.told -> 'from', e.told -> 'by_run',
    e.told -> 'joined')::text AS told
FROM (SELECT id, wake, run, at, fields::json AS told FROM event
    WHERE agent = :agent AND id > :after AND id <= :last AND kind = 'decided' ORDER BY id DESC LIMIT :limit) e
ORDER BY e.id DESC;

-- name: count_lane_wakes
SELECT count(*) AS number FROM event WHERE agent = :agent AND id > :after AND id <= :last AND kind = 'decided';

-- name: pause_events
SELECT id, kind, at, agent, wake, run, item, fields FROM event
WHERE kind IN ('declared', 'removed', 'set', 'paused', 'resumed', 'stopped', 'task_changed')
    AND agent IS NOT DISTINCT FROM :agent::text AND kind IN ('paused', 'resumed') ORDER BY id DESC LIMIT :limit;

-- name: overview_rows
SELECT a.name, a.address, a.version, a.overrides, s.agent, s.state, s.hits, s.idle_streak, s.failure_streak, s.due_at,
    s.gates, s.costs, s.last_outcome, s.last_ended_at
FROM agent a JOIN standing s ON s.agent = a.name
WHERE a.name >= :first AND a.name <= :last AND a.name <> :after AND a.removed_at IS NULL ORDER BY a.name LIMIT :limit;

-- name: named_overview_rows
-- Those of these names, and those behind these addresses.
SELECT a.name, a.address, a.version, a.overrides, s.agent, s.state, s.hits, s.idle_streak, s.failure_streak, s.due_at,
    s.gates, s.costs, s.last_outcome, s.last_ended_at
FROM (SELECT a.name FROM json_array_elements_text(:names::json) AS j (value) JOIN agent a ON a.name = j.value
        WHERE a.removed_at IS NULL
    UNION SELECT a.name FROM json_array_elements_text(:names::json) AS j (value) JOIN agent a ON a.address = j.value
        WHERE a.removed_at IS NULL) n
JOIN agent a ON a.name = n.name JOIN standing s ON s.agent = a.name
WHERE a.name > :after ORDER BY a.name LIMIT :limit;

-- name: declared_agents
SELECT a.name, a.address, a.version, a.declaration, a.overrides, a.enabled, a.removed_at
FROM json_array_elements_text(:names::json) AS j (value) JOIN agent a ON a.name = j.value;

-- name: pauses_in
SELECT scope, owner, reason, since, until FROM pause
WHERE scope = 'fleet' OR (scope >= :first_scope AND scope <= :last_scope);

-- name: oldest_waiting
-- A one-off whose time has not come waits for nothing but its time.
SELECT DISTINCT ON (coalesce(w.agent, ''))
    w.id, w.agent, w.role, w.cause, w.subject, w.sender, w.reason, w.item, w.task, w.source, w.by_run, w.root,
    w.depth, w.lineage_usd, w.slot, w.attempt, w.charged, w.requested_at, w.state, w.guard,
    w.verdict, w.retry_at, w.joined, (SELECT max(r.id) FROM run r WHERE r.wake = w.id) AS run
FROM wake w
WHERE w.state = 'waiting' AND coalesce(w.agent, '') >= :first AND coalesce(w.agent, '') <= :last
    AND w.agent IS NOT NULL AND (w.slot = '' OR w.guard IS NOT NULL)
ORDER BY coalesce(w.agent, ''), w.requested_at, w.id;

-- name: oldest_waiting_of
-- The same of a few, wherever they stand.
SELECT DISTINCT ON (w.agent)
    w.id, w.agent, w.role, w.cause, w.subject, w.sender, w.reason, w.item, w.task, w.source, w.by_run, w.root,
    w.depth, w.lineage_usd, w.slot, w.attempt, w.charged, w.requested_at, w.state, w.guard,
    w.verdict, w.retry_at, w.joined, (SELECT max(r.id) FROM run r WHERE r.wake = w.id) AS run
FROM json_array_elements_text(:names::json) AS j (value) JOIN wake w ON coalesce(w.agent, '') = j.value
WHERE w.state = 'waiting' AND w.agent IS NOT NULL AND (w.slot = '' OR w.guard IS NOT NULL)
ORDER BY w.agent, w.requested_at, w.id;

-- name: unread_counts_of
SELECT coalesce(json_object_agg(agent, unread), '{}')::text AS counts FROM (SELECT i.agent, count(*) AS unread
    FROM json_array_elements_text(:names::json) AS j (value) JOIN item i ON i.agent = j.value
    WHERE i.kind = 'message' AND i.closed_at IS NULL AND (i.shown IS NULL OR i.shown <> i.fingerprint OR i.unanswered > 0)
        AND (:now::bigint IS NULL OR i.not_before IS NULL OR i.not_before <= :now::bigint)
    GROUP BY i.agent) AS counted;

-- name: task_counts_of
SELECT coalesce(json_object_agg(target, tasks), '{}')::text AS counts FROM (SELECT i.target, count(*) AS tasks
    FROM json_array_elements_text(:names::json) AS j (value) JOIN item i ON i.target = j.value
    WHERE i.kind = 'task' AND i.closed_at IS NULL GROUP BY i.target) AS counted;

-- name: unread_counts
-- One row, however many agents there are.
SELECT coalesce(json_object_agg(agent, unread), '{}')::text AS counts FROM (SELECT agent, count(*) AS unread FROM item
    WHERE agent >= :first AND agent <= :last AND kind = 'message' AND closed_at IS NULL
        AND (shown IS NULL OR shown <> fingerprint OR unanswered > 0)
        AND (:now::bigint IS NULL OR not_before IS NULL OR not_before <= :now::bigint)
    GROUP BY agent) AS counted;

-- name: task_counts
SELECT coalesce(json_object_agg(target, tasks), '{}')::text AS counts FROM (SELECT target, count(*) AS tasks FROM item
    WHERE target >= :first AND target <= :last AND kind = 'task' AND closed_at IS NULL GROUP BY target) AS counted;

-- name: open_messages
SELECT coalesce(json_object_agg(agent, open), '{}')::text AS counts FROM (SELECT agent, count(*) AS open FROM item
    WHERE kind = 'message' AND closed_at IS NULL GROUP BY agent) AS counted;

-- name: oldest_message
-- Since when the oldest message waits that is not put off, and that no run has answered.
SELECT min(greatest(created_at, coalesce(not_before, 0))) AS since FROM item
WHERE kind = 'message' AND closed_at IS NULL AND (shown IS NULL OR shown <> fingerprint OR unanswered > 0)
    AND (not_before IS NULL OR not_before <= :now::bigint);

-- name: oldest_task
-- The first of each queue that could begin, and of those for which a wake waits. Younger ones have larger numbers.
SELECT min(created_at) AS since FROM item WHERE :now::bigint IS NOT NULL AND id IN (
    SELECT min(id) FROM item
    WHERE kind = 'task' AND state IN ('pending', 'failed') AND waits_for = 0 AND behind = 0 AND asked IS NULL
        AND not_before IS NULL
    UNION ALL
    SELECT min(task) FROM wake WHERE state = 'waiting' AND cause = 'task');
