"""Spark finds this package by its name: `format("headrace-iceberg")` works where Headrace is installed."""

from headrace.spark.tables.sources import IcebergSource as DefaultSource

__all__ = ["DefaultSource"]
