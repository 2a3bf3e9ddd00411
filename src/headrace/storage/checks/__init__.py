"""Damage: how it is found, what it means, and how it is repaired.

`scan.py` reads a segment file batch by batch, however damaged. `damage.py` describes a damaged closed
segment and `repair.py` replaces it with another replica's batches; `losses.py` says which logs may have
lost records; `verify.py` checks all files of a partition without changing them (decisions 0033 and 0035).

Recovery, the broker's repairs and `headrace log verify` import it. Begin with `scan.py`.
"""
