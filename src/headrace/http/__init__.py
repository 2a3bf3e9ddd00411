"""The HTTP gateway: REST proxy, schema registry, administration, metrics and console, all in one app."""
