"""GPUs in parts: what is left of devices in, points out; and the plugin GpuSharing around that."""
