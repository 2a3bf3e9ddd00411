"""SASL, the broker's side: one exchange of messages for each mechanism. Pure."""
