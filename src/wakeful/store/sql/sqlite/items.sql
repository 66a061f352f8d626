-- name: put_item
-- A key that is known takes no number: those of items have no gaps but for what was removed or forgotten.
INSERT INTO item (kind, state, agent, sender, origin, subject, body, type, priority, ring, ring_at, dedupe, source, external_id, fingerprint,
    not_before, tags, reply_to, thread, by_run, metadata, created_at)
SELECT 'message', 'open', :agent, :sender, :origin, :subject, :body, :type, :priority, :ring,
    -- Nobody's timer would ever show a silent message to such an agent: it rings late instead of never.
    CASE WHEN :sweep_at IS NULL THEN :ring_at ELSE (SELECT :sweep_at FROM address WHERE name = :agent AND timerless) END,
    :dedupe, :source, :external_id, :fingerprint, :not_before, :tags, :reply_to,
    (SELECT coalesce(t.thread, t.id) FROM item t WHERE t.id = :reply_to), :by_run, :metadata, :now
WHERE :dedupe IS NULL OR NOT EXISTS (SELECT 1 FROM item k WHERE k.dedupe = :dedupe AND k.dedupe IS NOT NULL);

-- name: put_task
INSERT INTO item (kind, ring, fingerprint,
    state, agent, role, target, sender, origin, subject, body, type, priority, dedupe, source, max_retries, key,
    not_before, tags, by_run, metadata, place, timeout, payload, attempts, result, error, created_at, closed_at,
    depth, behind)
SELECT 'task', 'silent', '1',
    :state, :agent, :role, :target, :sender, :origin, :subject, :body, :type, :priority, :dedupe, :source,
    :max_retries, :key, :not_before, :tags, :by_run, :metadata, :place, :timeout, :payload, :attempts, :result,
    :error, :created_at, :closed_at, :depth,
    :key IS NOT NULL AND (:behind OR EXISTS (SELECT 1 FROM item o WHERE o.key = :key AND o.closed_at IS NULL))
WHERE :dedupe IS NULL OR NOT EXISTS (SELECT 1 FROM item k WHERE k.dedupe = :dedupe AND k.dedupe IS NOT NULL);

-- name: items_by_dedupe
SELECT id, dedupe, kind, agent, role, subject, body, metadata, type, payload, priority FROM item
WHERE dedupe IN (SELECT value FROM json_each(:keys)) AND dedupe IS NOT NULL;

-- name: item_row
SELECT id, kind, state, agent, role, sender, origin, subject, body, type, priority, ring, fingerprint, shown, asked,
    unanswered, held_by, attempts, max_retries, key, source, external_id, not_before, result, error, created_at,
    closed_at, by_run, reply_to, thread, metadata, payload, timeout, tags, dedupe, waits_for
FROM item WHERE id = :item;

-- name: mirrored
SELECT id, external_id, fingerprint FROM item
WHERE source = :source AND external_id IS NOT NULL AND closed_at IS NULL AND agent = :agent;

-- name: change_mirrored
-- What a run does to an item that it has put off is no more news to it than what it does to one that it holds.
UPDATE item SET fingerprint = :fingerprint, subject = :subject, body = :body,
    not_before = CASE WHEN held_by IS NULL AND not_before > :now AND EXISTS (SELECT 1 FROM run_item s JOIN run r ON r.id = s.run
        WHERE s.item = item.id AND r.ended_at IS NULL) THEN not_before ELSE :not_before END,
    ring_at = CASE WHEN held_by IS NULL AND not_before > :now AND EXISTS (SELECT 1 FROM run_item s JOIN run r ON r.id = s.run
        WHERE s.item = item.id AND r.ended_at IS NULL) THEN ring_at ELSE :ring_at END, asked = NULL, unanswered = 0
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
FROM item i INDEXED BY item_gone WHERE fingerprint IN (SELECT value FROM json_each(:prints))
    AND external_id IS NOT NULL AND closed_at IS NOT NULL AND source = :source AND agent = :agent
ORDER BY id;

-- name: reopen_mirrored
UPDATE item SET state = 'open', closed_at = NULL, held_by = :held_by, shown = :shown, unanswered = :unanswered,
    asked = CASE WHEN :ring_at IS NULL THEN asked END, ring_at = coalesce(:ring_at, ring_at)
WHERE id = :item;

-- name: items_by_hand
SELECT id, kind, agent, source, external_id, closed_at FROM item
WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY id;

-- name: mark_read
UPDATE item SET state = 'closed', closed_at = :now, held_by = NULL WHERE id = :item AND closed_at IS NULL;

-- name: snooze_item
-- It rings as news, whoever sent it: to put something off must not be a way past the limits, nor be held to those of its sender.
UPDATE item SET not_before = :until, ring_at = :until, ring = 'news',
    asked = NULL, shown = NULL, unanswered = 0, held_by = NULL
WHERE id = :item AND closed_at IS NULL;

-- name: ask_item
-- A generation that is to ring later has not asked yet.
UPDATE item SET asked = :wake WHERE id = :item AND asked IS NULL AND (ring_at IS NULL OR ring_at <= :now);

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
INSERT INTO run_item (run, item, fingerprint) VALUES (:run, :item, :fingerprint);

-- name: hold_item
UPDATE item SET held_by = :run WHERE id = :item;

-- name: shown_items
-- What was read or put off meanwhile is not this run's to settle; another one may hold it already.
SELECT i.id, i.external_id, i.fingerprint, i.unanswered, r.fingerprint AS shown_fingerprint, i.closed_at
FROM run_item r JOIN item i ON i.id = r.item WHERE r.run = :run AND i.held_by = r.run ORDER BY i.id;

-- name: settle_item
UPDATE item SET shown = :shown, asked = coalesce(asked, :wake), held_by = NULL,
    unanswered = CASE WHEN :answered THEN 0 ELSE unanswered + 1 END,
    state = CASE WHEN :answered AND external_id IS NULL THEN 'closed' ELSE state END,
    closed_at = CASE WHEN :answered AND external_id IS NULL THEN :now ELSE NULL END
WHERE id = :item AND closed_at IS NULL;

-- name: ring_rest
-- What rings and was not shown, for want of room, rings again; not what was refused, or what somebody waits for.
UPDATE item SET asked = NULL, ring_at = max(ring_at, :at)
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
