"""DynamicResources: the plugin, and its work at each of its extension points."""
