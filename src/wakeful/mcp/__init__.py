"""How a model asks: the tools of a fleet over MCP, each an operation of control. Begin reading at `tools`.

Law: nothing here decides anything. Whoever asks is known by its token, and control says what it may do.
"""
