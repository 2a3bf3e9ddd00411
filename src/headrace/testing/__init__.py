"""Helpers for tests, ours and other people's. Nothing else in the package imports this."""
