"""The museum: published incidents of schedulers, each as a scenario.

`asched chaos --scenario Incident07`; docs/results/scenarios.md lists them with their results.
"""
