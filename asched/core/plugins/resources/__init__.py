"""Requests and capacities: NodeResourcesFit and NodeResourcesBalancedAllocation."""
