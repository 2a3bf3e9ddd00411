"""`headrace.Producer`: serialisation, partitions, delivery."""
