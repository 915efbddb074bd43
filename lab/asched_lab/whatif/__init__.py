"""What would be: a cluster as it is or was, hypothetical changes, and the scheduler itself."""
