"""The audit: every stored fact held against the events, and against every other.

Laws:
- Reading is one module's business (`pages`); all else are folds of what was read, the same for the same rows.
- No total, streak or fact of the store is believed: what can be counted is counted. The rules are those of `core`.
- What retention has taken is not missed. Where the events are silent, whatever they allow is allowed.
- A finding says what was expected, what was found, in which rows, and what to do. Nothing is mended.
"""
