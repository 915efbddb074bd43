"""Old forms of the configuration, translated to v1: v1beta1 to v1beta3, and the Policy."""
