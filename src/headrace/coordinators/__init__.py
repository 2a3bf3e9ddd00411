"""Coordinators as pure state machines: state from a log, decisions as records. No clock, no I/O.

`machine.py` is the interface: `decide` methods return a `Decision` of records and a reply and change
nothing; `apply` changes the state by one record, and is all that a restart calls. `deadlines.py` has their
timers. `group` and `transaction` are the machines; share groups will be the third.

`broker/coordinators` runs them. Begin with `machine.py` and `decision.py`, then
`transaction/coordinator.py`.
"""
