"""The client of a schema registry: reading and registering schemas, and finding the registry.

`registry.py` is the HTTP client, `location.py` discovers the registry of a cluster, `records.py` decodes
and encodes records for tools. CLI, serializers and `tables` import it. Begin with `registry.py`.
"""
