"""`headrace.Admin`: topics, settings, offsets, users, ACLs, quotas and delegation tokens.

`admin.py` is the class that users see, with one method per operation; the other files translate one subject
each into requests of the protocol. `wire` sends them to the right broker and retries.

CLI, gateway and users import it. Begin with `admin.py`.
"""
