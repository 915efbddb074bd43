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

#: Names that readers did not understand (the whole name, with or without underscores in front).
BANNED_NAMES = {
    r"sights?": "changes, events of a watch",
    r"originals": "raw objects",
    r"settled": "what was reached: processed, bound",
    r"counter_s": "monotonic_s",
    r"news|has_news": "unread entries; changes that an answer made",
    r"sliced": "sliced work",
    r"turned": "rows whose feasibility changed",
    r"drop_room|needs_room": "the result of the PostFilter plugins; victims",
    r"judges?": "the first plugin that rejects; filter",
}
