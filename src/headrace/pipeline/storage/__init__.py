"""Where the state of a pipeline is stored: a local directory or an object store.

`files.py` is the interface; `object_store.py` has conditional writes, `file_lock.py` and `lease.py` let one
driver at a time run a pipeline. `pipeline/state.py` imports it. Begin with `files.py`.
"""
