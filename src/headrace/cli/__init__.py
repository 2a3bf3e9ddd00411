"""The command line `headrace`: one file per noun, a function per verb.

`main.py` lists the commands, imports each only when it runs, and turns errors into one line on stderr.
`support` has what commands share: the session with --bootstrap and --json, tables, progress. `machine` runs
clusters on one machine, `pipeline` the commands of pipelines, `demo` the demonstration.

Nothing imports this package. Begin with `topic.py`, a typical noun.
"""
