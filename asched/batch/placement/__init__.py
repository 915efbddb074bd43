"""Places for a whole group: bounds, plans, the search; free amounts over time."""
