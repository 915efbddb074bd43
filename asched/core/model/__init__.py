"""Kubernetes objects as small frozen records, decoded once per object version.

Every record is a frozen `msgspec.Struct` in the API's own shape with only the fields that a
scheduler reads. The client decodes bytes straight into them, tests and recordings convert mappings
(`decode.py`). This package does not import NumPy and does not apply defaults of the API server.
"""
