"""Findings of `headrace doctor`: problems of a machine, its data and a cluster, each with advice. Pure.

`diagnosis.py` defines a finding. One file per subject turns facts into findings; facts are read elsewhere,
by `reading.py` over the wire and by `cli/doctor` on this machine. The console shows the same findings.
"""
