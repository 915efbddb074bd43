"""The configuration: files read, checked, followed while the process runs."""
