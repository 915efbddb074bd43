"""Network topology: racks, blocks and the like as one tree, from any of several sources."""
