"""Why a pod waits, and the smallest change that would end it."""
