"""One view per page: it reads the cluster through `headrace.client`, and renders its template.

A view has no state. Forms are posted to the same file, which calls the admin API's functions and redirects.
Begin with `topics.py`.
"""
