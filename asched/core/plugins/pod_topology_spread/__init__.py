"""PodTopologySpread: spread matching pods over zones, hosts or other domains.

Rejects   a node that lacks a topology key of a hard constraint (evicting pods cannot help), or
          whose domain would then hold over maxSkew pods more than the emptiest (it can).
Prefers   domains with few such pods, by the soft constraints; the cluster's defaults are soft.
Retry     a pod that counts is added, deleted or relabelled; a node with the keys is added, deleted,
          moves to another domain or changes its taints; the pod's own tolerations.
Cost      counts are kept per selector and domain: each domain is evaluated once, then one gather.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/podtopologyspread
"""

from asched.core.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
