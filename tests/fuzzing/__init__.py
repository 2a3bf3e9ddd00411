"""Coverage-guided fuzzing of whatever parses bytes of strangers: `make fuzz`, or a short run in `make unit`.

A small loop of our own, because the usual tools do not fit: atheris has no wheels for every Python that we
support, HypoFuzz brings a web server, and neither sees the decoders, which are compiled at run time from the
schemas of messages. `coverage.py` does, and it counts executed lines, so that a parser whose work is out of
proportion to its input is found as well, however fast the machine is.
"""
