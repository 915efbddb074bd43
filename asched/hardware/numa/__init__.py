"""Pods on nodes where one NUMA zone has room for them: what the kubelet's topology manager decides,
known beforehand.
"""
