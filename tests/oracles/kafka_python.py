"""kafka-python, imported here so that nobody hears how it opens its schema files."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it loads its schemas the way of Python 3.8
    from kafka import KafkaProducer
    from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
    from kafka.record.memory_records import MemoryRecords

__all__ = ["DefaultRecordBatch", "DefaultRecordBatchBuilder", "KafkaProducer", "MemoryRecords"]
