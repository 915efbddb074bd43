"""The worst day on a real control plane: pods stream in while everything around them dies.

    KUBEBUILDER_ASSETS=... python -m tests.e2e.worst_day --pods 20000 --nodes 1000

What is asserted is read from the API alone: every pod has a node, none ever had two, no rule is
broken. What is measured is the time from each fault's end to the next binding.
"""
