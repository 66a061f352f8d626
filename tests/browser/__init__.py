"""The dashboard as a person sees it: real Chromium before a fleet that really runs.

A package, so that Chromium is gone with its last test: as long as it is driven, nobody else in this process can have
an event loop.
"""
