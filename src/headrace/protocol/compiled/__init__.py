"""Compiles the codec of a message: Python source for one class and version, generated on first use.

`decoder.py` and `encoder.py` write the source, `source.py` has its lines and names, `structs.py` the base
of all message classes. `protocol/codec.py` is the only way in (decision 0002).
"""
