"""The controller: one broker decides who leads what, writes it down, and tells the others."""
