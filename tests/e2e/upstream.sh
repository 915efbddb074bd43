#!/bin/sh
# Run Kubernetes' own end-to-end specs against one scheduler: asched or kube-scheduler in its place.
#
#   tests/e2e/upstream.sh asched|kube OUT FOCUS [flags of e2e.test]
#   tests/e2e/upstream.sh asched out/asched '\[sig-scheduling\]'
#
# OUT gets e2e.test's log and junit_01.xml, and violations.jsonl if a kubelet would have refused a pod.
# Needed: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl and e2e.test of one
# version, and openssl, on PATH; .venv. Exit status: e2e.test's, 2 for usage. See upstream/README.md.
set -eu

[ $# -ge 3 ] || { echo "usage: $0 asched|kube OUT FOCUS [flags of e2e.test]" >&2; exit 2; }
scheduler=$1 out=$2 focus=$3
shift 3
top=$(cd "$(dirname "$0")/../.." && pwd)
command -v e2e.test > /dev/null || { echo "$0: e2e.test is not on PATH" >&2; exit 2; }
ASCHED=${ASCHED:-$top/.venv/bin/asched}
PYTHONPATH=$top:$top/lab
export ASCHED PYTHONPATH

mkdir -p "$out"
folder=$(mktemp -d)
"$top/.venv/bin/python" -m tests.e2e.upstream.cluster "$folder/cluster" "$scheduler" > "$out/cluster.log" &
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
e2e.test --provider=skeleton --kubeconfig="$folder/cluster/kubeconfig" --num-nodes=4 \
  --allowed-not-ready-nodes=-1 --minStartupPods=-1 --dump-logs-on-failure=false \
  --report-dir="$out" --ginkgo.no-color --ginkgo.timeout=1h --ginkgo.v --ginkgo.focus="$focus" \
  "$@" > "$out/log" 2>&1 || status=$?
cp "$folder/cluster/scheduler.log" "$out"
[ ! -f "$folder/cluster/violations.jsonl" ] || cp "$folder/cluster/violations.jsonl" "$out"
grep -E '^(Ran|SUCCESS|FAIL!)' "$out/log" || true
exit "$status"
