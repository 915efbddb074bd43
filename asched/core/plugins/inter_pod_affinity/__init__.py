"""InterPodAffinity: place pods near certain pods, or away from them.

Rejects   a node without pods that match all required affinity terms in its domains (evicting pods
          cannot help); a node whose domain holds a pod that a required anti-affinity term of this
          pod matches, or whose own such term matches this pod (evicting can).
Prefers   domains with pods that its preferred terms match, or whose terms match it.
Retry     a pod that matches is added, deleted or relabelled; a node is added, or its domains
          change.
Cost      counts are kept per term and domain: each domain is evaluated once, then one gather.
Source    kubernetes/kubernetes v1.36 pkg/scheduler/framework/plugins/interpodaffinity
"""

from asched.core.plugins.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
