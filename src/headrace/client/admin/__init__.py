"""`headrace.Admin`: topics, settings, offsets."""
