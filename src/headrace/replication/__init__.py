"""Replication of a partition: ISR, high watermark, leader election. Pure: no clock, no I/O."""
