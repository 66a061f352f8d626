"""Declarations on disk into core types: `fleet.org`, `lifecycle.org` and `fleet.yml` are one model."""

from wakeful.fleet.diagnostics import Diagnostic, Severity
from wakeful.fleet.load import Loaded, check_file, find_fleet, load_fleet
from wakeful.fleet.watch import FleetFile

__all__ = ["Diagnostic", "FleetFile", "Loaded", "Severity", "check_file", "find_fleet", "load_fleet"]
