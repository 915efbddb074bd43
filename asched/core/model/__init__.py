"""The nouns: Kubernetes objects as small frozen records, decoded once per object version.

Every record is a frozen `msgspec.Struct` in the API's own shape that holds only what a scheduler
reads. The client decodes bytes straight into them, tests and recordings convert mappings
(`decode.py`). Nothing here imports NumPy or knows a default that belongs to the API server.
"""
