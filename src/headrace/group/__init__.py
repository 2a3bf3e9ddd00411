"""Consumer groups: who reads what, and how far they have come. Pure: no clock, no I/O."""
