"""Metrics that every Kubernetes component has, and our own under asched_*.

    leader_election_*          leadership
    kubernetes_build_info, kubernetes_feature_enabled
    authentication_*, authorization_*, apiserver_delegated_*   requests for pages
    asched_*                   metrics without a counterpart in kube-scheduler

Families whose upstream names break Prometheus' naming rules (authentication_attempts,
authentication_token_cache_active_fetch_count, authenticated_user_requests) are left out, so that
promtool reports nothing.

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/component-base/metrics, and recorded pages
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from asched.serve.telemetry.instruments import Families, exponential

ASKING_BOUNDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
#: Of a pool without a holder: handed on, and after the time of a Lease.
GAP_BOUNDS: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 17.0, 20.0, 30.0, 60.0)
AUTH_BOUNDS: Final = exponential(0.001, 2, 15)
TOKEN_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
DELEGATED_BOUNDS: Final = (0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0)
LAG_BOUNDS: Final = exponential(0.0005, 2, 14)

#: The version whose behaviour, flags and metrics are followed.
KUBERNETES_VERSION: Final = "1.36.3"


class LeaderMetrics:
    """Leadership by the name of the lease."""

    def __init__(self, families: Families) -> None:
        self._status = families.gauge(
            "leader_election_master_status",
            "[ALPHA] 1 while this process leads, 0 while it stands by; `name` is the lease.",
            ("name",),
        )
        self.slow_path = families.counter(
            "leader_election_slowpath_total",
            "[ALPHA] Renewals that had to read the lease first.",
            ("name",),
        )

        self.pool_gap = families.histogram(
            "asched_pool_gap_seconds",
            "[ALPHA] Time from the last renewal by another replica, or its release, until this one"
            " decides for the pool.",
            GAP_BOUNDS,
            ("pool",),
        )

    def leads(self, lease: str, *, is_leader: bool) -> None:
        self._status.of(lease).value = float(is_leader)


class AccessMetrics:
    """Metrics of authentication and authorization of page requests."""

    def __init__(self, families: Families) -> None:
        self.authentication = families.histogram(
            "authentication_duration_seconds",
            "[ALPHA] Time to authenticate a request, by result.",
            AUTH_BOUNDS,
            ("result",),
        )
        self.authorization = families.histogram(
            "authorization_duration_seconds",
            "[ALPHA] Time to authorize a request, by result.",
            AUTH_BOUNDS,
            ("result",),
        )
        self.authorizations = families.counter(
            "authorization_attempts_total",
            "[ALPHA] Authorization decisions: allowed, denied, no-opinion or error.",
            ("result",),
        )
        self.authn_requests = families.counter(
            "apiserver_delegated_authn_request_total",
            "[ALPHA] TokenReviews by status code.",
            ("code",),
        )
        self.authn_duration = families.histogram(
            "apiserver_delegated_authn_request_duration_seconds",
            "[ALPHA] Time of a TokenReview by status code.",
            DELEGATED_BOUNDS,
            ("code",),
        )
        self.authz_requests = families.counter(
            "apiserver_delegated_authz_request_total",
            "[ALPHA] SubjectAccessReviews by status code.",
            ("code",),
        )
        self.authz_duration = families.histogram(
            "apiserver_delegated_authz_request_duration_seconds",
            "[ALPHA] Time of a SubjectAccessReview by status code.",
            DELEGATED_BOUNDS,
            ("code",),
        )

        self.token_requests = families.counter(
            "authentication_token_cache_request_total",
            "[ALPHA] Lookups in the token cache: hit or miss.",
            ("status",),
        )
        self.token_duration = families.histogram(
            "authentication_token_cache_request_duration_seconds",
            "[ALPHA] Time to authenticate a token: hit or miss.",
            TOKEN_BOUNDS,
            ("status",),
        )
        self.token_fetches = families.counter(
            "authentication_token_cache_fetch_total",
            "[ALPHA] Token reviews: ok (answered) or error.",
            ("status",),
        )

    def looked_at_token(self, duration_s: float, *, is_known: bool) -> None:
        status = "hit" if is_known else "miss"
        self.token_requests.add(status)
        self.token_duration.of(status).observe(duration_s)

    @contextmanager
    def fetching_token(self) -> Iterator[None]:
        """A context around a token review; an exception counts as an error."""
        status = "error"
        try:
            yield
            status = "ok"
        finally:
            self.token_fetches.add(status)

    def authenticated(self, result: str, duration_s: float) -> None:
        self.authentication.of(result).observe(duration_s)

    def authorized(self, result: str, duration_s: float) -> None:
        self.authorizations.add(result)
        self.authorization.of(result).observe(duration_s)

    def reviewed_token(self, code: str, duration_s: float) -> None:
        self.authn_requests.add(code)
        self.authn_duration.of(code).observe(duration_s)

    def reviewed_access(self, code: str, duration_s: float) -> None:
        self.authz_requests.add(code)
        self.authz_duration.of(code).observe(duration_s)


class OwnMetrics:
    """asched_*: counted ones here, ones read on demand in `serve/figures.py`."""

    def __init__(self, families: Families) -> None:
        self.plugin_exceptions = families.counter(
            "asched_plugin_exceptions_total",
            "[ALPHA] Exceptions raised by a plugin; each fails one attempt of a pod.",
            ("plugin", "extension_point"),
        )
        self.contained_exceptions = families.counter(
            "asched_contained_exceptions_total",
            "[ALPHA] Exceptions not raised by a plugin; each fails one attempt.",
            ("part",),
        )
        self.complaints = families.counter(
            "asched_complaints_total",
            "[ALPHA] Internal invariants violated and repaired; see the log.",
        )
        self.binding_failures = families.counter(
            "asched_binding_failures_total", "[ALPHA] Bindings that failed."
        )
        self.kubelet_refusals = families.counter(
            "asched_pods_refused_by_kubelet_total",
            "[ALPHA] Pods placed by this process that a kubelet rejected because the node was full"
            " (OutOfcpu and the like) or differed from the cached one, by reason.",
            ("reason",),
        )
        self.group_statuses = families.counter(
            "asched_podgroup_status_writes_total",
            "[ALPHA] Statuses written to PodGroups of scheduling.x-k8s.io, by phase, and error for"
            " failed writes.",
            ("phase",),
        )
        self.quota_statuses = families.counter(
            "asched_elasticquota_status_writes_total",
            "[ALPHA] Statuses written to ElasticQuotas (success), and failed writes (error).",
            ("result",),
        )
        self.reloads = families.counter(
            "asched_config_reloads_total",
            "[ALPHA] Reloads of the configuration: applied, refused or unchanged.",
            ("result",),
        )
        self._extender_requests = families.counter(
            "asched_extender_requests_total",
            "[ALPHA] Requests to an extender (its urlPrefix) by verb and result: success (any"
            " answer), refused (not processed) or lost (may have been processed).",
            ("extender", "verb", "result"),
        )
        self._extender_duration = families.histogram(
            "asched_extender_request_duration_seconds",
            "[ALPHA] Time of a request to an extender, with or without an answer.",
            ASKING_BOUNDS,
            ("extender", "verb"),
        )
        self.loop_lag = families.histogram(
            "asched_event_loop_lag_seconds",
            "[ALPHA] Delay of a timer of the event loop.",
            LAG_BOUNDS,
        ).of()
        self.audit_differences = families.counter(
            "asched_audit_differences_total",
            "[ALPHA] Cached objects that differed from the API server, by kind of difference; each"
            " was repaired.",
            ("resource", "what"),
        )
        self.audit_compared = families.counter(
            "asched_audit_compared_total",
            "[ALPHA] Objects that audits compared, by part: a kind, queue or columns.",
            ("part",),
        )
        self.audit_failures = families.counter(
            "asched_audit_failures_total",
            "[ALPHA] Parts of audits that failed because of the API server.",
            ("part",),
        )

    def extender_asked(self, extender: str, verb: str, result: str, duration_s: float) -> None:
        """One request to an extender (`kube.extenders.ExtenderObserver`)."""
        self._extender_requests.add(extender, verb, result)
        self._extender_duration.of(extender, verb).observe(duration_s)
