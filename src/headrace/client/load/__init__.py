"""The load of `headrace bench`: worker processes that produce and consume, and the figures of their results.

`cli/bench.py` imports it. Begin with `run.py`.
"""
