"""The Python environment that executors need, in one archive."""
