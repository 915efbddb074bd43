"""Metrics of requests to the API server.

    rest_client_*              requests: number, duration, size, retries
    workqueue_*                the lanes of writes, by lane
    scheduler_async_api_call_* bindings and patches of pod statuses

rest_client_exec_plugin_certificate_rotation_age is left out: its name breaks Prometheus' rules.
Families about the transports of Go's client do not apply (docs/parity.md).

Source  kubernetes/kubernetes v1.36 staging/src/k8s.io/component-base/metrics/prometheus/restclient,
        pkg/scheduler/metrics, and recorded pages
"""

from typing import Final

from asched.serve.telemetry.instruments import Families, exponential

CLAIMS: Final = "scheduler_resourceclaim_creates_total"
SHARED_CLAIMS: Final = "dynamic_resource_allocation_resourceclaim_creates_total"
CLAIMS_TEXT: Final = "[ALPHA] Resource claims made for extended resources: success or failure."

REQUEST_BOUNDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
SIZE_BOUNDS: Final = (64, 256, 512, *(1024.0 * 4**n for n in range(8)))
WORK_BOUNDS: Final = exponential(1e-8, 10, 10)
CALL_BOUNDS: Final = exponential(0.001, 2, 15)


class ClientMetrics:
    """Metrics of the client: requests, and the writes of each lane as work queues."""

    def __init__(self, families: Families) -> None:
        self.requests = families.counter(
            "rest_client_requests_total",
            "[ALPHA] Requests to the API server by status code, method and host.",
            ("code", "method", "host"),
        )
        self.request_duration = families.histogram(
            "rest_client_request_duration_seconds",
            "[ALPHA] Time of a request to the API server.",
            REQUEST_BOUNDS,
            ("verb", "host"),
        )
        self.request_size = families.histogram(
            "rest_client_request_size_bytes",
            "[ALPHA] Size of the body of a request to the API server.",
            SIZE_BOUNDS,
            ("verb", "host"),
        )
        self.response_size = families.histogram(
            "rest_client_response_size_bytes",
            "[ALPHA] Size of the body of an answer of the API server.",
            SIZE_BOUNDS,
            ("verb", "host"),
        )
        self.rate_limiter = families.histogram(
            "rest_client_rate_limiter_duration_seconds",
            "[ALPHA] Time the client's rate limit (clientConnection.qps) delayed a request.",
            REQUEST_BOUNDS,
            ("verb", "host"),
        )
        self.request_retries = families.counter(
            "rest_client_request_retries_total",
            "[ALPHA] Requests that repeat an earlier one, by status code, verb and host.",
            ("code", "verb", "host"),
        )
        #: Families that exist only behind the gate SchedulerAsyncAPICalls.
        self.calls: AsyncCallMetrics | None = None
        self.adds = families.counter(
            "workqueue_adds_total", "[BETA] Writes queued, by lane.", ("name",)
        )
        self.retries = families.counter(
            "workqueue_retries_total", "[BETA] Writes retried, by lane.", ("name",)
        )
        self.queue_duration = families.histogram(
            "workqueue_queue_duration_seconds",
            "[BETA] Time a write waited in its lane before it was sent.",
            WORK_BOUNDS,
            ("name",),
        )
        self.work_duration = families.histogram(
            "workqueue_work_duration_seconds",
            "[BETA] Time of one attempt of a write.",
            WORK_BOUNDS,
            ("name",),
        )
        self.claims = families.counter(CLAIMS, CLAIMS_TEXT, ("status",))
        self.binding_conflicts = families.counter(
            "asched_binding_conflicts_total",
            "[ALPHA] Bindings refused because their pod had changed since the decision.",
        )
        self._claim_labels: tuple[str, ...] = ()

    def share_claims_metric(self, families: Families) -> None:
        """Count claims under the name that all components have for it since 1.37."""
        families.drop(CLAIMS)
        labels = ("status", "admin_access", "owner_api_group", "owner_api_kind")
        self.claims = families.counter(SHARED_CLAIMS, CLAIMS_TEXT, labels)
        self._claim_labels = ("false", "", "Pod")

    def created_claim(self, *, is_created: bool) -> None:
        status = "success" if is_created else "failure"
        self.claims.add(status, *self._claim_labels)

    def requested(
        self,
        exchange: tuple[str, str, str, float | None, int | None, int | None],
    ) -> None:
        """One exchange with the API server (`kube.transport.Exchange`)."""
        method, host, code, duration_s, sent, received = exchange
        self.requests.of(code, method, host).value += 1
        if duration_s is not None:
            self.request_duration.of(method, host).observe(duration_s)
        if sent is not None:
            self.request_size.of(method, host).observe(sent)
        if received is not None:
            self.response_size.of(method, host).observe(received)

    def know_lanes(self, names: tuple[str, ...]) -> None:
        for name in names:
            self.adds.of(name)
            self.retries.of(name)

    def worked(self, lane: str, waited_s: float, worked_s: float, *, is_retry: bool) -> None:
        """One attempt of a write: how long it had waited, how long it took."""
        self.work_duration.of(lane).observe(worked_s)
        if is_retry:
            self.retries.of(lane).value += 1
        else:
            self.queue_duration.of(lane).observe(waited_s)


class AsyncCallMetrics:
    """Bindings and patches of pod statuses, under upstream's names for its gated dispatcher. They
    are asynchronous here with and without the gate, which only adds the families.
    """

    def __init__(self, families: Families) -> None:
        self._executed = families.counter(
            "scheduler_async_api_call_execution_total",
            "[ALPHA] Requests of a type of call by result: success or error.",
            ("call_type", "result"),
        )
        self._duration = families.histogram(
            "scheduler_async_api_call_execution_duration_seconds",
            "[ALPHA] Time of a request of a type of call, by result.",
            CALL_BOUNDS,
            ("call_type", "result"),
        )

    def ended(self, call_type: str, duration_s: float, *, is_done: bool) -> None:
        result = "success" if is_done else "error"
        self._executed.of(call_type, result).value += 1
        self._duration.of(call_type, result).observe(duration_s)
