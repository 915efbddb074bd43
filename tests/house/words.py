"""Words that make objects into people, or cannot be searched, with what to write instead."""

#: A pattern (whole words, any case) and the replacement to choose from.
BANNED = {
    r"told|tells": "reports, message, event, notifies, receives, records",
    r"nobody|somebody|anybody|whoever|whomever|those who": "name it: no pod, a plugin, clients",
    r"strangers?": "other schedulers, unauthenticated clients",
    r"in vain|pointless": "no effect, unnecessary",
    r"by turns": "alternating",
    r"troubles?|worst day|bad day": "failure, failure scenario",
    r"wish|wishes": "request, required resources",
    r"doors?|drawers?|houses?": "entry point, package, code base",
    r"company|mates?": "pacer, gang; the other pods of the group",
    r"deaf|speakers?": "silent watch; matching terms",
    r"noughts?": "rows with score zero",
    r"at load \d+": "on a busy machine (load average N)",
}
