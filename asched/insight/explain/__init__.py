"""Why a pod waits, and the smallest change with which it would fit."""
