"""The broker: the shell around the pure parts, with its sockets, its clock and its session."""
