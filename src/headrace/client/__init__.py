"""Talking to a cluster over the wire, as anybody's client would."""
