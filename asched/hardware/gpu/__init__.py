"""Shared GPUs: scores from the free parts of devices; and the plugin GpuSharing."""
