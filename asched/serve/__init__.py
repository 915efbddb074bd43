"""The serving port: authentication, health, metrics, pages, the live view."""
