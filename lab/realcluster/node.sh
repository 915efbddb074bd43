#!/bin/bash
# What runs in the namespaces of a node: containerd, kubelet, kube-proxy. cluster.py sets the variables.
set -euo pipefail

hostname "$NODE"
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p /run/lock

# Folders that the programs know by these names; the machine's own are covered.
for target in /var/lib/containerd /var/lib/kubelet /var/log; do
  mkdir -p "$FOLDER$target" "$target"
  mount --bind "$FOLDER$target" "$target"
done
mkdir -p /var/log/pods /var/log/containers "$FOLDER/manifests" "$FOLDER/network"
mkdir -p /var/lib/kubelet/disks/a /var/lib/kubelet/disks/b   # of local volumes

# The node's own programs are in one cgroup beside the pods', as systemd has them in system.slice.
move() {
  while read -r process; do
    echo "$process" > "$1/init/cgroup.procs" 2> /dev/null || true
  done < "$1/cgroup.procs"
}
if [ -z "$CGROUPS" ]; then  # cgroup v2
  mount -t cgroup2 cgroup /sys/fs/cgroup
  mkdir -p /sys/fs/cgroup/init
  move /sys/fs/cgroup
  sed 's/\</+/g' /sys/fs/cgroup/cgroup.controllers > /sys/fs/cgroup/cgroup.subtree_control
else
  mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
  for controllers in $CGROUPS; do
    folder=/sys/fs/cgroup/${controllers#name=}
    options=$controllers
    if [ "$controllers" != "${controllers#name=}" ]; then options=none,$controllers; fi
    mkdir "$folder"
    mount -t cgroup -o "$options" cgroup "$folder"
    for name in ${controllers//,/ }; do
      [ -e "/sys/fs/cgroup/${name#name=}" ] || ln -s "${controllers#name=}" "/sys/fs/cgroup/$name"
    done
    mkdir -p "$folder/init"
    for name in cpuset.cpus cpuset.mems; do
      [ ! -e "$folder/$name" ] || cat "$folder/$name" > "$folder/init/$name"
    done
    move "$folder"
  done
fi
mount --make-rshared /

# kubelet sets these for the whole machine; here it writes to files of its own.
for name in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops \
  kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
  mkdir -p "/run/sysctl/$(dirname $name)"
  cat "/proc/sys/$name" > "/run/sysctl/$name"
  mount --bind "/run/sysctl/$name" "/proc/sys/$name"
done

cat > "$FOLDER/network/10-bridge.conflist" << END
{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "pods", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "$POD_NETWORK"}]],
            "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "/run/network"}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
END

cat > "$FOLDER/containerd.toml" << END
version = 2
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
                    "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:3.10"
  # Without CAP_SYS_RESOURCE runc could not lower the value of a container.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$NETWORK_PLUGINS"
    conf_dir = "$FOLDER/network"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
END

cat > "$FOLDER/kubelet.yaml" << END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: $CERTIFICATES/ca.crt}
authorization: {mode: Webhook}
tlsCertFile: $CERTIFICATES/$NODE-serving.crt
tlsPrivateKeyFile: $CERTIFICATES/$NODE-serving.key
clusterDomain: cluster.local
# No pod of the trials asks for names.
clusterDNS: [10.96.0.10]
resolvConf: /etc/resolv.conf
staticPodPath: $FOLDER/manifests
maxPods: 110
# The nodes share the disk of one machine.
imageGCHighThresholdPercent: 99
imageGCLowThresholdPercent: 98
evictionHard: {memory.available: 100Mi, nodefs.available: "1%", nodefs.inodesFree: "1%", imagefs.available: "1%"}
END

# As systemd or static pods would: what ends is started again.
serve() {
  local name=$1
  shift
  while :; do
    "$@" >> "$FOLDER/$name.log" 2>&1 || echo "$name ended: $?" >> "$FOLDER/$name.log"
    sleep 3
  done
}

serve containerd containerd --config "$FOLDER/containerd.toml" &
until ctr version > /dev/null 2>&1; do sleep 0.5; done
if [ ! -e "$FOLDER/imported" ]; then
  for archive in "$IMAGES"/*.tar; do
    ctr --namespace k8s.io images import "$archive" >> "$FOLDER/import.log" 2>&1
  done
  # The image of the next version is the same, unless an archive has it.
  next=${IMAGE%:*}:$NEXT_TAG
  if ! ctr --namespace k8s.io images list --quiet | grep -qx "$next"; then
    ctr --namespace k8s.io images tag "$IMAGE" "$next" >> "$FOLDER/import.log"
  fi
  touch "$FOLDER/imported"
fi
serve kubelet "$NODE_ASSETS/kubelet" --config="$FOLDER/kubelet.yaml" --kubeconfig="$CERTIFICATES/$NODE.kubeconfig" \
  --hostname-override="$NODE" --node-ip="$NODE_ADDRESS" --node-labels="topology.kubernetes.io/zone=$ZONE" --v=2 &
serve kube-proxy "$NODE_ASSETS/kube-proxy" --kubeconfig="$CERTIFICATES/proxy.kubeconfig" \
  --hostname-override="$NODE" --proxy-mode=nftables --conntrack-max-per-core=0 \
  --conntrack-tcp-timeout-established=0s --conntrack-tcp-timeout-close-wait=0s --v=2 &
wait
