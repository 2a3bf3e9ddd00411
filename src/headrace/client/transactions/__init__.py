"""Transactions of a cluster, for operators: list, describe, find those that hang, and abort them."""
