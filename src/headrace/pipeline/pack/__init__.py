"""The Python environment that executors need, in one archive for `--archives`.

`environment.py` copies the installed packages and writes the file, `distributions.py` selects the packages by
their requirements. `cli/pipeline/pack.py` imports it.
"""
