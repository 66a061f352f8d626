"""What a node tells of its work to those who watch many: counts for Prometheus, spans for OpenTelemetry."""
