"""The protocol by which replicas follow one another and share a cluster, searched completely."""
