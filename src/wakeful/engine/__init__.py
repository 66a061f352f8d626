"""The only package that runs anything."""
