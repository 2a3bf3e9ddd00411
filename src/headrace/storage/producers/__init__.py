"""The producers of a partition: duplicates, sequence gaps, fenced epochs and open transactions.

`state.py` is one producer (pure), `producers.py` all of a partition with their snapshots on disk,
`snapshot.py` the bytes of a `.snapshot` file.

`storage/log.py` and recovery import it. Begin with `state.py`.
"""
