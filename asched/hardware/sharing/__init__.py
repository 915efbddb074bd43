"""Parts of devices given out by annotations, as device plugins on the nodes expect them."""
