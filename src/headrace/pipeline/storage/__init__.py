"""Where the state of a pipeline is stored: a local directory, an object store, or HDFS.

`files.py` is the interface; `object_store.py` and `hadoop_files.py` implement it with conditional writes,
`lease.py` lets one driver at a time run a pipeline. `pipeline/state.py` imports it. Begin with `files.py`.
"""
