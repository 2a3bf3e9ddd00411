"""What is wrong with a machine, its data and a cluster, and what to do about it."""
