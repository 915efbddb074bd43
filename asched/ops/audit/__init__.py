"""The audit: slowly all the time, and on demand, what is known is compared with the API server."""
