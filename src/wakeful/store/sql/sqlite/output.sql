-- name: put_output
INSERT INTO output (run, stream, start, data)
SELECT :run, :stream, coalesce((SELECT o.start + length(o.data) FROM output o WHERE o.run = :run AND o.stream = :stream
    ORDER BY o.start DESC LIMIT 1), 0), :data;

-- name: output_size
SELECT start + length(data) AS size FROM output WHERE run = :run AND stream = :stream ORDER BY start DESC LIMIT 1;

-- name: output_pieces
-- From the one that the first wanted byte is in.
SELECT start, data FROM output
WHERE run = :run AND stream = :stream AND start < :until AND start >= coalesce((SELECT o.start FROM output o
    WHERE o.run = :run AND o.stream = :stream AND o.start <= :since ORDER BY o.start DESC LIMIT 1), 0)
ORDER BY start;
