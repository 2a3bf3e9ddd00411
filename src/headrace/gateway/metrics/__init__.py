"""Metrics for Prometheus, health checks, and the counters that the console draws.

`routes.py` serves them, `counters.py` asks brokers, groups and pipelines, `derived.py` computes lag and
states from them (pure), `exposition.py` writes the text format.
"""
