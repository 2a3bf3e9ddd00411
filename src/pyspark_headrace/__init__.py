"""Spark finds this package by its name: `format("headrace")` works where Headrace is installed."""

from headrace.spark.source import HeadraceSource as DefaultSource

__all__ = ["DefaultSource"]
