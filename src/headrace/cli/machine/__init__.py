"""A cluster on one machine: `headrace up`."""
