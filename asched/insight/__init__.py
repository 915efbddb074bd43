"""What was decided and why: explanations, and decisions of another scheduler compared."""
