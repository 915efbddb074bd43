"""ElasticQuotas of namespaces, and LocalQueues of Kueue, which has quotas of its own.

Source  kubernetes-sigs/scheduler-plugins apis/scheduling/v1alpha1; kubernetes-sigs/kueue
"""

from asched.core.model.meta import ApiObject, Record
from asched.core.model.pod import ResourceList


class ElasticQuotaSpec(Record, frozen=True, gc=False):
    """`min` is guaranteed, and lent while it is not used; `max` is the limit."""

    min: ResourceList | None = None
    max: ResourceList | None = None


class ElasticQuotaStatus(Record, frozen=True, gc=False):
    used: ResourceList | None = None


class ElasticQuota(ApiObject, frozen=True, gc=False):
    spec: ElasticQuotaSpec = ElasticQuotaSpec()
    status: ElasticQuotaStatus = ElasticQuotaStatus()


class LocalQueue(ApiObject, frozen=True, gc=False):
    """Of Kueue: only its existence in a namespace is read."""
