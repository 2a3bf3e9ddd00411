"""The Python environment that executors need, in one archive for `--archives`.

`environment.py` copies the installed packages, `distributions.py` selects them by their requirements, and
`archive.py` writes the file. `cli/pipeline/pack.py` imports it.
"""
