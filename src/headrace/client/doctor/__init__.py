"""`headrace doctor`: problems of a machine, its data and a cluster, each with advice."""
