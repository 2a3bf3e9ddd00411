"""Consumer groups, for tools that are not members."""
