"""One request for all new nodes that a gang lacks, in the form that cluster-autoscaler serves."""
