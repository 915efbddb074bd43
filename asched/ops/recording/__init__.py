"""What decides, recorded on disk while it runs."""
