"""Consumer groups as those see them who are no members."""
