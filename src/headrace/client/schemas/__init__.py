"""A schema registry as its clients see it."""
