"""Dynamic resources: the plugin, and what it does at each of its points."""
