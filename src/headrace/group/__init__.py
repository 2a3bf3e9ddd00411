"""The group coordinator: members, assignments and committed offsets. Pure: no clock, no I/O."""
