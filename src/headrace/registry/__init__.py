"""The schema registry: schemas, their versions and what may follow what. Pure."""
