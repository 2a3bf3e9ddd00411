"""Replicas of a partition: who is in sync, what is committed, who may lead. Pure: no clock, no I/O."""
