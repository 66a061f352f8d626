"""The fleet over HTTP: a thin skin over `control`, on the loopback, behind tokens.

Laws:
- Nothing is decided here. A route checks who asks and what was said, calls the operation of the same name and tells
  its answer.
- Who asks is settled in one place (`entry`), before any route; a path that is not named there needs a token.
- Nothing outside this package and the composition root imports a web framework: the command line stays fast.
"""
