"""Encoding and decoding of values by any schema of a registry: JSON on one side, bytes on the other.

`codec` has one codec for each format. `processes` runs them in worker processes with limits of CPU time and
memory, for schemas and values whose cost cannot be known in advance.
"""
