"""Places for a whole gang: bounds, plans and the search. No rule of placement lives here."""
