"""Network topology: racks, blocks and the like as one tree, from whoever tells of them."""
