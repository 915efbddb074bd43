#!/usr/bin/env bash
# Create a kind cluster with asched, simulated nodes and 5,000 pending pods, and measure the rate.
#
#   deploy/kind/loadtest.sh [--pods N] [--nodes N] [--keep] [--existing]
#
#   --keep      leave the cluster (kind delete cluster --name asched)
#   --existing  use the cluster of the current kubeconfig: no kind, no KWOK, no image, and asched
#               must already run there. Pods and nodes stay when it ends.
#
# Needs docker, kind, kubectl, python3; and for KWOK the manifests of a release, either from the
# network or in KWOK_DIR (kwok.yaml, stage-fast.yaml).
# Exit status: 0 every pod placed and nothing overcommitted, 1 if not, 2 wrong use or a tool missing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cluster=asched
namespace=asched-load
image=asched:kind
kwok_version=${KWOK_VERSION:-v0.7.0}
kwok_source=${KWOK_DIR:-https://github.com/kubernetes-sigs/kwok/releases/download/$kwok_version}
pods=5000
nodes=500
keep=no
existing=no
created=no
wait_s=${WAIT_S:-600}
poll_s=${POLL_S:-2}

say() { printf 'loadtest: %s\n' "$*" >&2; }
fail() { local status=$1; shift; say "$*"; exit "$status"; }

is_count() { [[ $1 =~ ^[1-9][0-9]*$ ]] || fail 2 "$2 must be a whole number above 0, not '$1'"; }

while [ $# -gt 0 ]; do
  case $1 in
    --pods | --nodes)
      [ $# -ge 2 ] || fail 2 "$1 needs a number"
      is_count "$2" "$1"
      if [ "$1" = --pods ]; then pods=$2; else nodes=$2; fi
      shift 2
      ;;
    --keep) keep=yes; shift ;;
    --existing) existing=yes; shift ;;
    -h | --help) sed -n '2,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) fail 2 "unknown argument '$1'; see --help" ;;
  esac
done

need() {
  local tool
  for tool in "$@"; do
    command -v "$tool" > /dev/null || fail 2 "$tool is needed and not installed"
  done
}

tear_down() {
  if [ "$created" = yes ] && [ "$keep" = no ]; then
    say "deleting the cluster"
    kind delete cluster --name "$cluster" > /dev/null 2>&1 || true
  fi
  rm -rf "$work"
}

start_cluster() {
  docker info > /dev/null 2>&1 || fail 2 "the docker daemon does not answer"
  ! kind get clusters 2> /dev/null | grep -qx "$cluster" ||
    fail 2 "a kind cluster '$cluster' exists; delete it, or use --existing"
  say "creating the kind cluster '$cluster'"
  created=yes
  kind create cluster --config "$here/cluster.yaml" --wait 120s
  say "building and loading the image"
  docker build --quiet --tag "$image" "$root" > /dev/null
  kind load docker-image "$image" --name "$cluster"
  say "starting KWOK ($kwok_source) and asched"
  kubectl apply -f "$kwok_source/kwok.yaml"
  kubectl -n kube-system rollout status deployment/kwok-controller --timeout=120s
  kubectl apply -f "$kwok_source/stage-fast.yaml"
  kubectl apply -k "$root/deploy/overlays/kind"
  kubectl -n asched-system rollout status deployment/asched --timeout=120s
}

# Objects of an earlier run would make every creation fail, and the rate wrong.
refuse_leftovers() {
  local left
  left=$(kubectl get namespace "$namespace" --ignore-not-found --output name
    kubectl get nodes --selector "app=$namespace" --output name)
  [ -z "$left" ] || fail 2 "an earlier run left objects; remove them with: kubectl delete" \
    "namespace $namespace --ignore-not-found; kubectl delete nodes -l app=$namespace"
}

make_nodes() {
  say "creating $nodes simulated nodes"
  # create, not apply: thousands of nodes need no last-applied annotation.
  python3 "$here/manifests.py" nodes "$nodes" | kubectl create -f - > /dev/null
  if [ "$existing" = no ]; then
    kubectl wait --for=condition=Ready node -l type=kwok --timeout=300s > /dev/null
  fi
}

# A quota of no pods cannot make pods wait; a stopped scheduler can. In an existing cluster the Deployment
# is not changed, so pods are created and placed at the same time.
make_pods() {
  kubectl create namespace "$namespace" > /dev/null
  if [ "$existing" = no ]; then
    kubectl -n asched-system scale deployment/asched --replicas=0 > /dev/null
    kubectl -n asched-system wait --for=delete pod -l app.kubernetes.io/name=asched \
      --timeout=60s > /dev/null
  fi
  say "creating $pods pods"
  python3 "$here/manifests.py" pods "$pods" | kubectl create -f - > /dev/null
  if [ "$existing" = no ]; then
    kubectl -n asched-system scale deployment/asched --replicas=1 > /dev/null
  fi
}

wait_for_pods() {
  local waited=0 placed=0
  while :; do
    placed=$(kubectl -n "$namespace" get pods -o json | python3 "$here/judge.py" progress)
    say "$placed of $pods placed after ${waited} s"
    [ "$placed" -ge "$pods" ] && return 0
    [ "$waited" -ge "$wait_s" ] && return 0 # the report says what is missing
    sleep "$poll_s"
    waited=$((waited + poll_s))
  done
}

report() {
  kubectl get nodes -o json > "$work/nodes.json"
  kubectl -n "$namespace" get pods -o json | python3 "$here/judge.py" report "$work/nodes.json"
}

need kubectl python3
work=$(mktemp -d)
trap tear_down EXIT
if [ "$existing" = no ]; then
  need docker kind
  start_cluster
else
  kubectl version > /dev/null 2>&1 || fail 2 "the cluster of the current kubeconfig does not answer"
  refuse_leftovers
fi
make_nodes
make_pods
wait_for_pods
report
