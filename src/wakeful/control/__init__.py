"""Everything a person or an agent may ask of a fleet; HTTP, MCP, CLI and dashboard only call this.

`operations` alone is light: a command that asks a running engine imports nothing else of this package.
"""
