-- name: put_item
INSERT INTO item (kind, state, agent, sender, origin, subject, body, type, priority, ring, ring_at, dedupe, source, external_id, fingerprint,
    not_before, tags, reply_to, thread, by_run, metadata, created_at)
SELECT 'message', 'open', r.agent, r.sender, r.origin, r.subject, r.body, r.type, r.priority, r.ring,
    -- Nobody's timer would ever show a silent message to such an agent: it rings late instead of never.
    CASE WHEN r.sweep_at IS NULL THEN r.ring_at
        ELSE (SELECT r.sweep_at FROM address d WHERE d.name = r.agent AND d.timerless = 1) END,
    r.dedupe, r.source, r.external_id, r.fingerprint, r.not_before, r.tags, r.reply_to,
    (SELECT coalesce(t.thread, t.id) FROM item t WHERE t.id = r.reply_to), r.by_run, r.metadata, r.now
FROM ROWS FROM (json_to_recordset(:rows::json) AS (
    agent text, sender text, origin text, subject text, body text, type text, priority smallint, ring text, ring_at
    bigint, sweep_at bigint, dedupe text, source text, external_id text, fingerprint text, not_before bigint, tags
    text, reply_to bigint, by_run bigint, metadata text, now bigint)) WITH ORDINALITY AS r (
    agent, sender, origin, subject, body, type, priority, ring, ring_at, sweep_at, dedupe, source, external_id,
    fingerprint, not_before, tags, reply_to, by_run, metadata, now, turn)
-- What is known already needs no new id. As a look for each, so that it is never a scan for all.
WHERE r.dedupe IS NULL OR (SELECT k.id FROM item k WHERE k.dedupe = r.dedupe::varchar) IS NULL
ORDER BY r.turn
ON CONFLICT (dedupe) WHERE dedupe IS NOT NULL DO NOTHING
RETURNING id, dedupe;

-- name: put_task
INSERT INTO item (kind, ring, fingerprint,
    state, agent, role, target, sender, origin, subject, body, type, priority, dedupe, source, max_retries, key,
    not_before, tags, by_run, metadata, place, timeout, payload, attempts, result, error, created_at, closed_at,
    depth, behind)
SELECT 'task', 'silent', '1',
    r.state, r.agent, r.role, r.target, r.sender, r.origin, r.subject, r.body, r.type, r.priority, r.dedupe, r.source,
    r.max_retries, r.key, r.not_before, r.tags, r.by_run, r.metadata, r.place, r.timeout, r.payload, r.attempts,
    r.result, r.error, r.created_at, r.closed_at, r.depth,
    CASE WHEN r.key IS NULL THEN 0 WHEN r.behind = 1 THEN 1
        WHEN EXISTS (SELECT 1 FROM item o WHERE o.key = r.key::varchar AND o.key IS NOT NULL AND o.closed_at IS NULL) THEN 1 ELSE 0 END
FROM ROWS FROM (json_to_recordset(:rows::json) AS (
    state text, agent text, role text, target text, sender text, origin text, subject text, body text, type text,
    priority smallint, dedupe text, source text, max_retries int, key text, not_before bigint, tags text, by_run
    bigint, metadata text, place bigint, timeout bigint, payload text, attempts int, result text, error text,
    created_at bigint, closed_at bigint, depth int, behind smallint)) WITH ORDINALITY AS r (
    state, agent, role, target, sender, origin, subject, body, type, priority, dedupe, source, max_retries, key,
    not_before, tags, by_run, metadata, place, timeout, payload, attempts, result, error, created_at, closed_at,
    depth, behind, turn)
WHERE r.dedupe IS NULL OR (SELECT k.id FROM item k WHERE k.dedupe = r.dedupe::varchar) IS NULL
ORDER BY r.turn
ON CONFLICT (dedupe) WHERE dedupe IS NOT NULL DO NOTHING
RETURNING id, dedupe;

-- name: items_by_dedupe
SELECT id, dedupe, kind, agent, role, subject, body, metadata, type, payload, priority FROM item
WHERE dedupe = ANY (ARRAY(SELECT json_array_elements_text(:keys::json)::varchar)) AND dedupe IS NOT NULL;

-- name: item_row
SELECT id, kind, state, agent, role, sender, origin, subject, body, type, priority, ring, fingerprint, shown, asked,
    unanswered, held_by, attempts, max_retries, key, source, external_id, not_before, result, error, created_at,
    closed_at, by_run, reply_to, thread, metadata, payload, timeout, tags, dedupe, waits_for
FROM item WHERE id = :item;

-- name: mirrored
SELECT id, external_id, fingerprint FROM item
WHERE source = :source AND external_id IS NOT NULL AND closed_at IS NULL AND agent = :agent ORDER BY id;

-- name: change_mirrored
-- What a run does to an item that it has put off is no more news to it than what it does to one that it holds.
UPDATE item SET fingerprint = :fingerprint, subject = :subject, body = :body,
    not_before = CASE WHEN held_by IS NULL AND not_before > :now AND EXISTS (SELECT 1 FROM run_item s JOIN run r ON r.id = s.run
        WHERE s.item = item.id AND r.ended_at IS NULL) THEN not_before ELSE :not_before::bigint END,
    ring_at = CASE WHEN held_by IS NULL AND not_before > :now AND EXISTS (SELECT 1 FROM run_item s JOIN run r ON r.id = s.run
        WHERE s.item = item.id AND r.ended_at IS NULL) THEN ring_at ELSE :ring_at::bigint END, asked = NULL, unanswered = 0
WHERE id = :item;

-- name: close_mirrored
UPDATE item SET state = 'closed', closed_at = :now, held_by = NULL WHERE id = :item;

-- name: gone_things
-- What was gone and may be back; of a run that was under way when it went, whether it still is, and whether it was good.
-- Not of one from which it was put off: that run was shown it before it could be shown again.
SELECT id, external_id, fingerprint, shown, unanswered, not_before,
    (SELECT max(r.id) FROM run_item s JOIN run r ON r.id = s.run WHERE s.item = i.id AND r.ended_at IS NULL
        AND (i.not_before IS NULL OR i.not_before <= r.started_at)) AS under_way,
    EXISTS (SELECT 1 FROM run_item s JOIN run r ON r.id = s.run WHERE s.item = i.id AND s.fingerprint = i.fingerprint
        AND (i.not_before IS NULL OR i.not_before <= r.started_at)
        AND r.ended_at >= i.closed_at AND r.outcome IN ('done', 'no_work')) AS answered
FROM item i WHERE fingerprint = ANY (ARRAY(SELECT json_array_elements_text(:prints::json)))
    AND external_id IS NOT NULL AND closed_at IS NOT NULL AND source = :source AND agent = :agent
ORDER BY id;

-- name: reopen_mirrored
UPDATE item SET state = 'open', closed_at = NULL, held_by = :held_by::bigint, shown = :shown, unanswered = :unanswered,
    asked = CASE WHEN :ring_at::bigint IS NULL THEN asked END, ring_at = coalesce(:ring_at::bigint, ring_at)
WHERE id = :item;

-- name: items_by_hand
SELECT id, kind, agent, source, external_id, closed_at FROM item
WHERE id = ANY (ARRAY(SELECT json_array_elements_text(:ids::json)::bigint)) ORDER BY id;

-- name: mark_read
UPDATE item SET state = 'closed', closed_at = r.now, held_by = NULL
FROM json_to_recordset(:rows::json) AS r (item bigint, now bigint) WHERE item.id = r.item AND item.closed_at IS NULL;

-- name: snooze_item
-- It rings as news, whoever sent it: to put something off must not be a way past the limits, nor be held to those of its sender.
UPDATE item SET not_before = r.until, ring_at = r.until, ring = 'news',
    asked = NULL, shown = NULL, unanswered = 0, held_by = NULL
FROM json_to_recordset(:rows::json) AS r (item bigint, until bigint) WHERE item.id = r.item AND item.closed_at IS NULL;

-- name: ask_item
-- A generation that is to ring later has not asked yet.
UPDATE item SET asked = r.wake FROM json_to_recordset(:rows::json) AS r (item bigint, wake bigint, now bigint)
WHERE item.id = r.item AND item.asked IS NULL AND (item.ring_at IS NULL OR item.ring_at <= r.now);

-- name: unask_task
UPDATE item SET asked = NULL WHERE id = :item AND asked = :wake;

-- name: items_to_show
-- What a run failed on comes first, but a heap of it never crowds out what is more urgent.
SELECT * FROM (
    SELECT id, kind, state, agent, role, sender, origin, subject, body, type, priority, ring, fingerprint, shown, asked,
        unanswered, held_by, attempts, max_retries, key, source, external_id, not_before, result, error, created_at,
        closed_at, by_run, reply_to, thread, metadata, payload, timeout, tags, dedupe, waits_for
    FROM item
    WHERE agent IN (:agent, :address) AND kind = 'message' AND closed_at IS NULL AND held_by IS NULL
        AND (not_before IS NULL OR not_before <= :now)
        AND (shown IS NULL OR shown <> fingerprint OR unanswered > 0)
    ORDER BY priority DESC, unanswered > 0 DESC, id LIMIT :limit
) AS chosen ORDER BY unanswered > 0 DESC, priority DESC, id;

-- name: show_item
INSERT INTO run_item (run, item, fingerprint)
SELECT r.run, r.item, r.fingerprint
FROM json_to_recordset(:rows::json) AS r (run bigint, item bigint, fingerprint text);

-- name: hold_item
UPDATE item SET held_by = r.run FROM json_to_recordset(:rows::json) AS r (run bigint, item bigint) WHERE item.id = r.item;

-- name: shown_items
-- What was read or put off meanwhile is not this run's to settle; another one may hold it already.
SELECT i.id, i.external_id, i.fingerprint, i.unanswered, r.fingerprint AS shown_fingerprint, i.closed_at
FROM run_item r JOIN item i ON i.id = r.item WHERE r.run = :run AND i.held_by = r.run ORDER BY i.id;

-- name: settle_item
UPDATE item SET shown = r.shown, asked = coalesce(asked, r.wake), held_by = NULL,
    unanswered = CASE WHEN r.answered = 1 THEN 0 ELSE unanswered + 1 END,
    state = CASE WHEN r.answered = 1 AND external_id IS NULL THEN 'closed' ELSE state END,
    closed_at = CASE WHEN r.answered = 1 AND external_id IS NULL THEN r.now END
FROM json_to_recordset(:rows::json) AS r (item bigint, shown text, wake bigint, answered int, now bigint)
WHERE item.id = r.item AND item.closed_at IS NULL;

-- name: ring_rest
-- What rings and was not shown, for want of room, rings again; not what was refused, or what somebody waits for.
UPDATE item SET asked = NULL, ring_at = greatest(ring_at, :at)
WHERE agent IN (:agent, :address) AND ring_at IS NOT NULL AND closed_at IS NULL
    AND (shown IS NULL OR shown <> fingerprint OR unanswered > 0)
    AND (shown IS NULL OR shown <> fingerprint) AND asked IS NOT NULL AND held_by IS NULL
    AND (not_before IS NULL OR not_before <= :at)
    AND NOT EXISTS (SELECT 1 FROM wake w LEFT JOIN wake f ON f.id = w.joined
        WHERE w.id = item.asked AND coalesce(f.state, w.state) IN ('waiting', 'refused'));

-- name: release_items
UPDATE item SET held_by = NULL WHERE held_by = :run AND kind = 'message';

-- name: forget_shown
DELETE FROM run_item WHERE run = :run;
