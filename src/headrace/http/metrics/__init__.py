"""Metrics for Prometheus, health checks, and the rates that the console draws."""
