-- name: put_item
INSERT INTO item (kind, state, agent, role, target, sender, origin, subject, body, type, priority, ring, ring_at, dedupe,
    source, external_id, fingerprint, max_retries, key, not_before, tags, waits_for, reply_to, thread,
    by_run, metadata, created_at)
VALUES (:kind, :state, :agent, :role, :target, :sender, :origin, :subject, :body, :type, :priority,
    :ring,
    -- Nobody's timer would ever show a silent message to such an agent: it rings late instead of never.
    CASE WHEN :sweep_at IS NULL THEN :ring_at ELSE (SELECT :sweep_at FROM address WHERE name = :agent AND timerless) END,
    :dedupe, :source, :external_id, :fingerprint, :max_retries, :key, :not_before, :tags, :waits_for, :reply_to,
    (SELECT coalesce(t.thread, t.id) FROM item t WHERE t.id = :reply_to), :by_run, :metadata, :now)
ON CONFLICT (dedupe) WHERE dedupe IS NOT NULL DO NOTHING;

-- name: item_by_dedupe
SELECT id, kind, agent, role, subject, body, metadata, type, priority FROM item WHERE dedupe = :dedupe;

-- name: put_dependency
INSERT INTO dependency (item, needs) VALUES (:item, :needs);

-- name: open_needs
SELECT id, state FROM item WHERE id = :needs;

-- name: item_row
SELECT id, kind, state, agent, role, sender, origin, subject, body, type, priority, ring, fingerprint, shown, asked,
    unanswered, held_by, attempts, max_retries, key, source, external_id, not_before, result, error, created_at,
    closed_at, by_run, reply_to, thread, metadata
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
SELECT id, kind, state, agent, role, sender, origin, subject, body, type, priority, ring, fingerprint, shown, asked,
    unanswered, held_by, attempts, max_retries, key, source, external_id, not_before, result, error, created_at,
    closed_at, by_run, reply_to, thread, metadata
FROM item
WHERE agent IN (:agent, :address) AND kind = 'message' AND closed_at IS NULL AND held_by IS NULL
    AND (not_before IS NULL OR not_before <= :now)
    AND (shown IS NULL OR shown <> fingerprint OR unanswered > 0)
ORDER BY unanswered > 0 DESC, priority DESC, id
LIMIT :limit;

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

-- name: first_ready
-- The heads of all queues together, as far as the window goes; `open` says whether one may be offered.
SELECT i.id, i.agent, i.role, i.priority, i.created_at, i.source, i.by_run,
    (i.key IS NULL OR NOT EXISTS
        (SELECT 1 FROM item older WHERE older.key = i.key AND older.closed_at IS NULL AND older.id < i.id))
    AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || i.source)
    AND NOT EXISTS (SELECT 1 FROM wake w WHERE w.state = 'waiting' AND w.cause = 'task'
        AND coalesce(w.agent, 'role:' || w.role) = i.target
        AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || w.source))
    AND (EXISTS (SELECT 1 FROM role o WHERE i.agent IS NULL AND o.role = i.role)
        OR EXISTS (SELECT 1 FROM agent a WHERE a.name = i.agent AND a.removed_at IS NULL AND a.enabled)
        OR EXISTS (SELECT 1 FROM agent a WHERE a.address = i.agent AND a.removed_at IS NULL AND a.enabled)) AS open
FROM item i
WHERE i.kind = 'task' AND i.state IN ('pending', 'failed') AND i.waits_for = 0 AND i.asked IS NULL AND i.not_before IS NULL
ORDER BY i.priority DESC, i.id LIMIT :window;

-- name: first_later
-- The heads of all queues together, as far as the window goes; `open` says whether one may be offered.
SELECT i.id, i.agent, i.role, i.priority, i.created_at, i.source, i.by_run,
    (i.key IS NULL OR NOT EXISTS
        (SELECT 1 FROM item older WHERE older.key = i.key AND older.closed_at IS NULL AND older.id < i.id))
    AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || i.source)
    AND NOT EXISTS (SELECT 1 FROM wake w WHERE w.state = 'waiting' AND w.cause = 'task'
        AND coalesce(w.agent, 'role:' || w.role) = i.target
        AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || w.source))
    AND (EXISTS (SELECT 1 FROM role o WHERE i.agent IS NULL AND o.role = i.role)
        OR EXISTS (SELECT 1 FROM agent a WHERE a.name = i.agent AND a.removed_at IS NULL AND a.enabled)
        OR EXISTS (SELECT 1 FROM agent a WHERE a.address = i.agent AND a.removed_at IS NULL AND a.enabled)) AS open
FROM item i
WHERE i.kind = 'task' AND i.state IN ('pending', 'failed') AND i.waits_for = 0 AND i.asked IS NULL AND i.not_before IS NOT NULL AND i.not_before <= :now
ORDER BY i.not_before LIMIT :window;

-- name: ready_targets
-- From target to target, however long their queues; but those only for whom nobody waits yet, and somebody is there.
WITH RECURSIVE targets (target) AS (
    SELECT min(target) FROM item WHERE kind = 'task' AND state IN ('pending', 'failed') AND waits_for = 0 AND asked IS NULL
        AND not_before IS NULL
    UNION ALL
    SELECT (SELECT min(i.target) FROM item i WHERE i.target > targets.target AND i.kind = 'task' AND state IN ('pending', 'failed') AND waits_for = 0 AND asked IS NULL
        AND not_before IS NULL)
    FROM targets WHERE targets.target IS NOT NULL
)
SELECT t.target FROM targets t
WHERE t.target IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM wake w WHERE w.state = 'waiting' AND w.cause = 'task'
        AND coalesce(w.agent, 'role:' || w.role) = t.target
        AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || w.source))
    AND (EXISTS (SELECT 1 FROM role o WHERE substr(t.target, 1, 5) = 'role:' AND o.role = substr(t.target, 6))
        OR EXISTS (SELECT 1 FROM agent a WHERE a.name = t.target AND a.removed_at IS NULL AND a.enabled)
        OR EXISTS (SELECT 1 FROM agent a WHERE a.address = t.target AND a.removed_at IS NULL AND a.enabled));

-- name: later_targets
-- From target to target, however long their queues; but those only for whom nobody waits yet, and somebody is there.
WITH RECURSIVE targets (target) AS (
    SELECT min(target) FROM item WHERE kind = 'task' AND state IN ('pending', 'failed') AND waits_for = 0 AND asked IS NULL
        AND not_before IS NOT NULL
    UNION ALL
    SELECT (SELECT min(i.target) FROM item i WHERE i.target > targets.target AND i.kind = 'task' AND state IN ('pending', 'failed') AND waits_for = 0 AND asked IS NULL
        AND not_before IS NOT NULL)
    FROM targets WHERE targets.target IS NOT NULL
)
SELECT t.target FROM targets t
WHERE t.target IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM wake w WHERE w.state = 'waiting' AND w.cause = 'task'
        AND coalesce(w.agent, 'role:' || w.role) = t.target
        AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || w.source))
    AND (EXISTS (SELECT 1 FROM role o WHERE substr(t.target, 1, 5) = 'role:' AND o.role = substr(t.target, 6))
        OR EXISTS (SELECT 1 FROM agent a WHERE a.name = t.target AND a.removed_at IS NULL AND a.enabled)
        OR EXISTS (SELECT 1 FROM agent a WHERE a.address = t.target AND a.removed_at IS NULL AND a.enabled));

-- name: ready_tasks
SELECT i.id, i.agent, i.role, i.priority, i.created_at, i.source, i.by_run FROM item i
WHERE i.target = :target AND i.kind = 'task' AND i.state IN ('pending', 'failed') AND i.waits_for = 0
    AND i.asked IS NULL AND i.not_before IS NULL
    AND (i.key IS NULL OR NOT EXISTS
        (SELECT 1 FROM item older WHERE older.key = i.key AND older.closed_at IS NULL AND older.id < i.id))
    AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || i.source)
ORDER BY i.priority DESC, i.id LIMIT :limit;

-- name: later_tasks
SELECT i.id, i.agent, i.role, i.priority, i.created_at, i.source, i.by_run FROM item i
WHERE i.target = :target AND i.kind = 'task' AND i.state IN ('pending', 'failed') AND i.waits_for = 0
    AND i.asked IS NULL AND i.not_before IS NOT NULL AND i.not_before <= :now
    AND (i.key IS NULL OR NOT EXISTS
        (SELECT 1 FROM item older WHERE older.key = i.key AND older.closed_at IS NULL AND older.id < i.id))
    AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.scope = 'source:' || i.source)
ORDER BY i.not_before LIMIT :limit;

-- name: lease_task
UPDATE item SET state = 'in_progress', held_by = :run, asked = :wake
WHERE id = :item AND state IN ('pending', 'failed') AND held_by IS NULL;

-- name: put_attempt
INSERT INTO attempt (item, run, started_at) VALUES (:item, :run, :now);

-- name: tasks_of_run
SELECT i.id, i.kind, i.state, i.agent, i.role, i.sender, i.origin, i.subject, i.body, i.type, i.priority, i.ring,
    i.fingerprint, i.shown, i.asked, i.unanswered, i.held_by, i.attempts, i.max_retries, i.key, i.source,
    i.external_id, i.not_before, i.result, i.error, i.created_at, i.closed_at, i.by_run,
    i.reply_to, i.thread, i.metadata
FROM attempt a JOIN item i ON i.id = a.item
WHERE a.run = :run AND a.ended_at IS NULL ORDER BY i.priority DESC, i.id;

-- name: task_of_run
SELECT i.id, i.kind, i.state, i.agent, i.role, i.sender, i.origin, i.subject, i.body, i.type, i.priority, i.ring,
    i.fingerprint, i.shown, i.asked, i.unanswered, i.held_by, i.attempts, i.max_retries, i.key, i.source,
    i.external_id, i.not_before, i.result, i.error, i.created_at, i.closed_at, i.by_run,
    i.reply_to, i.thread, i.metadata
FROM attempt a JOIN item i ON i.id = a.item
WHERE a.item = :item AND a.run = :run AND a.ended_at IS NULL;

-- name: end_attempt
UPDATE attempt SET ended_at = :now, outcome = :outcome, counted = :counted, exit_code = :exit_code, error = :error
WHERE item = :item AND run = :run AND ended_at IS NULL;

-- name: settle_task
UPDATE item SET state = :state, held_by = NULL, asked = NULL, attempts = :attempts, not_before = :not_before,
    error = :error, result = coalesce(:result, result), shown = fingerprint, closed_at = :closed_at
WHERE id = :item AND held_by = :run;

-- name: unlease_tasks
UPDATE item SET state = CASE WHEN attempts > 0 THEN 'failed' ELSE 'pending' END, held_by = NULL, asked = NULL
WHERE held_by = :run AND kind = 'task';

-- name: forget_attempts
DELETE FROM attempt WHERE run = :run AND ended_at IS NULL;

-- name: task_attempts
SELECT item, run, started_at, ended_at, outcome, counted, exit_code, error FROM attempt WHERE item = :item ORDER BY run;

-- name: change_task_state
UPDATE item SET state = :state, held_by = NULL, asked = NULL, error = :error, closed_at = :closed_at,
    not_before = NULL, attempts = CASE WHEN :again THEN 0 ELSE attempts END
WHERE id = :item;

-- name: free_dependents
UPDATE item SET waits_for = waits_for - 1
WHERE waits_for > 0 AND id IN (SELECT item FROM dependency WHERE needs = :item);

-- name: block_dependents
UPDATE item SET state = 'blocked', error = :error, asked = NULL
WHERE state IN ('pending', 'failed') AND id IN (SELECT item FROM dependency WHERE needs = :item);

-- name: unblock_dependents
UPDATE item SET state = 'pending', error = NULL
WHERE state = 'blocked' AND waits_for > 0 AND id IN (SELECT item FROM dependency WHERE needs = :item)
    AND NOT EXISTS (SELECT 1 FROM dependency d JOIN item other ON other.id = d.needs
        WHERE d.item = item.id AND d.needs <> :item AND other.state IN ('cancelled', 'dead_letter'));

-- name: put_step
INSERT INTO step (subject, name, result, saved_at) VALUES (:subject, :name, :result, :now)
ON CONFLICT (subject, name) DO UPDATE SET result = :result, saved_at = :now WHERE result IS NULL;

-- name: step_rows
SELECT name, result FROM step WHERE subject = :subject ORDER BY saved_at, name;

-- name: forget_steps
DELETE FROM step WHERE subject = :subject;
