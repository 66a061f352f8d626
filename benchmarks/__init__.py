"""How fast the store is, measured against the floor of the disk it stands on. `python -m benchmarks`."""
