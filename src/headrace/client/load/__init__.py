"""The load of `headrace bench`: worker processes, and the figures of their results."""
