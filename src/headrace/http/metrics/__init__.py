"""What Prometheus scrapes, and whether the gateway is well."""
