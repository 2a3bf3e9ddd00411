"""`headrace.Producer`, and what becomes of the records it sends."""
