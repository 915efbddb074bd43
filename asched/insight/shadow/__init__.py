"""Shadow mode: compare the decisions of another scheduler with ours, and explain differences."""
