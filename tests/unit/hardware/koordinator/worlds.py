"""A node with its pods and the reports about it, and the loads that are made of them."""

NOW_S, INTERVAL_S, EXPIRES_S = 1_800_000_000.0, 60, 180
#: When the report was made.
REPORT_S = NOW_S - 30
OLD_S, NEW_S = REPORT_S - INTERVAL_S, REPORT_S - INTERVAL_S + 1
PROD, MID = "koord-prod", "koord-mid"
