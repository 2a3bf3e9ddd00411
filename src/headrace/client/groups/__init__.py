"""Consumer groups for tools that are not members: list, describe, delete, reset offsets, lag.

`admin.py` has the operations, `coordinators.py` asks the coordinator of each group, `reset.py` resolves
where offsets are reset to (pure). `headrace group`, the console and the metrics import it. Begin with
`admin.py`.
"""
