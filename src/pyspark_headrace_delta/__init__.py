"""Spark finds this package by its name: `format("headrace-delta")` works where Headrace is installed."""

from headrace.spark.tables.sources import DeltaSource as DefaultSource

__all__ = ["DefaultSource"]
