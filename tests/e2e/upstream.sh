#!/bin/sh
# Run Kubernetes' own end-to-end specs against one scheduler: asched or kube-scheduler in its place.
#
#   tests/e2e/upstream.sh asched|kube OUT FOCUS [flags of e2e.test]
#   tests/e2e/upstream.sh asched out/asched '\[sig-scheduling\]'
#
# OUT gets e2e.test's log and junit_01.xml, and violations.jsonl if a kubelet would have refused a pod.
# Needed: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl and e2e.test of one
# version, and openssl, on PATH; the harness in $ASCHED_SHARED/e2e (a control plane and a stand-in for
# kubelets); .venv. Exit status: e2e.test's, 2 for usage.
set -eu

[ $# -ge 3 ] || { echo "usage: $0 asched|kube OUT FOCUS [flags of e2e.test]" >&2; exit 2; }
scheduler=$1 out=$2 focus=$3
shift 3
top=$(cd "$(dirname "$0")/../.." && pwd)
harness=${ASCHED_SHARED:-$top/../shared}/e2e
[ -f "$harness/cluster.py" ] || { echo "$0: no harness in $harness; set ASCHED_SHARED" >&2; exit 2; }
E2E_TEST=$(command -v e2e.test) || { echo "$0: e2e.test is not on PATH" >&2; exit 2; }
ASCHED=${ASCHED:-$top/.venv/bin/asched}
export ASCHED E2E_TEST

mkdir -p "$out"
folder=$(mktemp -d)
"$top/.venv/bin/python" "$harness/cluster.py" "$folder/cluster" "$scheduler" > "$out/cluster.log" &
cluster=$!
trap 'kill "$cluster" || :; wait "$cluster" || :; rm -rf "$folder"' EXIT

patience=120
until [ "$(kubectl --kubeconfig "$folder/cluster/kubeconfig" get nodes 2> /dev/null | grep -c ' Ready ')" = 4 ]; do
  kill -0 "$cluster" 2> /dev/null || { cat "$out/cluster.log" >&2; exit 1; }
  patience=$((patience - 1))
  [ "$patience" -gt 0 ] || { echo "$0: the nodes are not ready" >&2; exit 1; }
  sleep 1
done

status=0
"$harness/run.sh" "$folder/cluster/kubeconfig" "$out" "$focus" "$@" || status=$?
cp "$folder/cluster/scheduler.log" "$out"
[ ! -f "$folder/cluster/violations.jsonl" ] || cp "$folder/cluster/violations.jsonl" "$out"
grep -E '^(Ran|SUCCESS|FAIL!)' "$out/log" || true
exit "$status"
