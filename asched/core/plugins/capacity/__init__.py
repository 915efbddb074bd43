"""Quotas of namespaces that lend to each other."""
