"""Place pods on nodes where one NUMA zone has room for them, as the kubelet's topology manager will
decide.
"""
