#!/usr/bin/env bash
# A real Kubernetes cluster of two nodes. It runs inside a machine of test/infra/machine.sh, and ends with it.
#
#   control plane   this machine's network               10.79.0.1     API server at https://10.79.0.1:6443, DNS
#   node1, node2    a network namespace each             10.79.0.11, 10.79.0.12
#   pods            a bridge in each node's namespace    10.245.1.0/24, 10.245.2.0/24
#   services        iptables rules, also of the control plane: programs of this machine call services by their addresses
#                                                        10.97.0.0/16
#
# usage: test/kube/cluster.sh up | load TAR | off NODE | on NODE
#   up     starts everything; prints the path of the kubeconfig
#   load   loads the images of `docker save` into both nodes
#   off    simulates a power failure of a node (1 or 2); `on` starts it again
#
# Requires root; `scripts/toolchain.sh` builds the programs, the others are Debian's packages (test/infra/machine.sh).
set -euo pipefail

home=${HEARTH_TEST_HOSTS:?the cluster runs on its own machine: npm run test:kube}
bin=${XDG_CACHE_HOME:-$HOME/.cache}/hearth/toolchain/bin
# Of all containers: the machine removes it.
group=hearth-$(basename "$HEARTH_MACHINE")
control=10.79.0.1
etcd=http://127.0.0.1:2379
nodes=(1 2)
export KUBECONFIG=$home/kubeconfig PATH=$bin:$PATH

log() { printf 'cluster: %s\n' "$*" >&2; }

start() { # name command...
  local name=$1
  shift
  setsid "$@" </dev/null >>"$home/$name.log" 2>&1 &
  echo $! >"$home/$name.pid"
}

wait_for() { # what, then a command that must come to succeed
  local what=$1
  shift
  for _ in $(seq 900); do
    "$@" >/dev/null 2>&1 && return
    sleep 0.2
  done
  log "$what did not come up within three minutes"
  return 1
}

# nsenter, not `ip netns exec`, which mounts a /sys without cgroups.
in_node() { nsenter --net="/run/netns/node$1" "${@:2}"; }

control_network() {
  ip link add nodes type bridge
  ip addr add $control/24 dev nodes
  ip link set nodes up
  sysctl -qw net.ipv4.ip_forward=1
  # Addresses are translated only once a route was found.
  ip route add 10.97.0.0/16 dev nodes
}

node_network() { # node
  local n=$1 other
  ip netns add node$n
  ip link add node$n type veth peer name eth0 netns node$n
  ip link set node$n master nodes up
  ip -n node$n addr add 10.79.0.1$n/24 dev eth0
  ip -n node$n link set lo up
  ip -n node$n link set eth0 up
  ip -n node$n route add default via $control
  in_node $n sysctl -qw net.ipv4.ip_forward=1
  ip route add 10.245.$n.0/24 via 10.79.0.1$n
  for other in "${nodes[@]}"; do
    ((other == n)) || ip -n node$n route add 10.245.$other.0/24 via 10.79.0.1$other
  done
}

# Both versions of control groups; in the first, each controller has its own tree and a new cpuset is empty.
control_groups() {
  local tree path
  if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
    for path in . "$group"; do
      mkdir -p "/sys/fs/cgroup/$path"
      for tree in cpuset cpu io memory pids; do echo "+$tree" >"/sys/fs/cgroup/$path/cgroup.subtree_control" || true; done
    done
    for n in "${nodes[@]}"; do mkdir -p "/sys/fs/cgroup/$group/node$n"; done
    return
  fi
  for tree in /sys/fs/cgroup/*/; do
    mkdir -p "$tree$group" 2>/dev/null || continue
    if [[ $tree == */cpuset/ ]]; then
      cat "${tree}cpuset.cpus" >"$tree$group/cpuset.cpus"
      cat "${tree}cpuset.mems" >"$tree$group/cpuset.mems"
      echo 1 >"$tree$group/cgroup.clone_children"
    fi
    for n in "${nodes[@]}"; do mkdir -p "$tree$group/node$n"; done
  done
}

control_plane() {
  local token
  # Directories that programs write to whatever they are told, private to the machine like every mount here.
  mkdir -p "$home/etcd" /var/lib/cni
  for directory in /var/log /var/lib/cni "$home/etcd"; do mount -t tmpfs hearth-kube "$directory"; done
  openssl genrsa -out "$home/accounts.key" 2048 2>/dev/null
  token=$(openssl rand -hex 16)
  echo "$token,admin,admin,system:masters" >"$home/tokens.csv"
  cat >"$KUBECONFIG" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: hearth, cluster: {server: "https://$control:6443", insecure-skip-tls-verify: true}}]
users: [{name: admin, user: {token: $token}}]
contexts: [{name: hearth, context: {cluster: hearth, user: admin}}]
current-context: hearth
YAML
  start etcd etcd --data-dir "$home/etcd/data" --listen-client-urls $etcd --advertise-client-urls $etcd --log-level error
  # Pods leave a lost node after seconds, not after five minutes.
  start apiserver kube-apiserver --etcd-servers=$etcd --cert-dir="$home/certificates" --token-auth-file="$home/tokens.csv" \
    --service-account-key-file="$home/accounts.key" --service-account-signing-key-file="$home/accounts.key" \
    --service-account-issuer=https://kubernetes.default.svc --bind-address=$control --advertise-address=$control \
    --authorization-mode=RBAC --allow-privileged=true --kubelet-preferred-address-types=InternalIP \
    --service-cluster-ip-range=10.97.0.0/16 --default-not-ready-toleration-seconds=5 --default-unreachable-toleration-seconds=5
  wait_for "the API server" kubectl get --raw /readyz
  start controllers kube-controller-manager --kubeconfig "$KUBECONFIG" --service-account-private-key-file="$home/accounts.key" \
    --root-ca-file="$home/certificates/apiserver.crt" --leader-elect=false --use-service-account-credentials \
    --node-monitor-period=1s --node-monitor-grace-period=8s
  start scheduler kube-scheduler --kubeconfig "$KUBECONFIG" --leader-elect=false
  cat >"$home/Corefile" <<CORE
.:53 {
  bind $control
  kubernetes cluster.local in-addr.arpa {
    kubeconfig $KUBECONFIG
  }
}
CORE
  start dns coredns -conf "$home/Corefile"
}

proxy_config() { # node
  cat >"$home/node$1/proxy.yaml" <<YAML
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clientConnection: {kubeconfig: $KUBECONFIG}
clusterCIDR: 10.245.0.0/16
conntrack: {maxPerCore: 0}
iptables: {minSyncPeriod: 0s}
hostnameOverride: node$1
YAML
}

node_config() { # node
  local n=$1 dir=$home/node$1
  mkdir -p "$dir/cni"
  proxy_config $n
  cat >"$dir/cni/pods.conflist" <<JSON
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "pods", "isGateway": true, "hairpinMode": true, "ipam": {
    "type": "host-local", "dataDir": "$dir/addresses", "ranges": [[{"subnet": "10.245.$n.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
JSON
  # The machine's sandbox may not raise a process above the OOM killer: runc would fail with "can't get final child's PID from pipe".
  cat >"$dir/containerd.toml" <<TOML
version = 2
root = "$dir/containerd"
state = "$dir/containerd-state"
[grpc]
  address = "$dir/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/hearth-test/pause:latest"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$dir/cni"
TOML
  : >"$dir/resolv.conf"
  cat >"$dir/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /$group/node$n
enforceNodeAllocatable: []
failSwapOn: false
containerRuntimeEndpoint: unix://$dir/containerd.sock
clusterDNS: [$control]
clusterDomain: cluster.local
resolvConf: $dir/resolv.conf
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 100Mi}
volumePluginDir: $dir/plugins
podLogsDir: $dir/pods
nodeStatusUpdateFrequency: 2s
nodeLeaseDurationSeconds: 8
syncFrequency: 10s
YAML
}

# Images in memory where there is enough of it: unpacked to a busy disk, they take minutes.
image_memory() { # node
  mkdir -p "$home/node$1/containerd"
  (($(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo) < 12 << 20)) || mount -t tmpfs hearth-kube "$home/node$1/containerd"
}

node_up() { # node
  local n=$1 dir=$home/node$1
  start containerd$n nsenter --net=/run/netns/node$n containerd --config "$dir/containerd.toml"
  wait_for "containerd of node $n" ctr --address "$dir/containerd.sock" version
  start kubelet$n nsenter --net=/run/netns/node$n kubelet --kubeconfig "$KUBECONFIG" --config "$dir/kubelet.yaml" \
    --hostname-override=node$n --node-ip=10.79.0.1$n --root-dir="$dir/kubelet" --cert-dir="$dir/certificates"
  start proxy$n nsenter --net=/run/netns/node$n kube-proxy --config "$dir/proxy.yaml"
}

up() {
  local n
  control_network
  control_groups
  for n in "${nodes[@]}"; do node_network "$n"; node_config "$n"; image_memory "$n"; done
  control_plane
  for n in "${nodes[@]}"; do node_up "$n"; done
  # With the identity of a node: it waits for its node, and the control plane is none.
  start proxy kube-proxy --config "$home/node1/proxy.yaml"
  wait_for "both nodes" both_ready
  echo "$KUBECONFIG"
}

both_ready() { [[ $(kubectl get nodes --no-headers | grep -c ' Ready ') == 2 ]]; }

load() { # tar
  local n imports=()
  for n in "${nodes[@]}"; do
    ctr --address "$home/node$n/containerd.sock" --namespace k8s.io images import "$1" >/dev/null &
    imports+=($!)
  done
  for n in "${imports[@]}"; do wait "$n"; done
}

# Its address does not respond and no process is left, pods included; what is on its disk is kept.
off() { # node
  local n=$1 name
  ip link set "node$n" down
  for name in kubelet containerd proxy; do kill -9 "$(<"$home/$name$n.pid")" || true; done
  { pgrep -f "^\S*containerd-shim.* -address $home/node$n/containerd.sock" || true; pods_of "$n"; } | xargs --no-run-if-empty kill -9
  log "node $n off"
}

pods_of() { # node
  find /sys/fs/cgroup/{pids/,}"$group/node$n" -name cgroup.procs -exec cat {} + 2>/dev/null || true
}

on() { # node
  local n=$1 dir=$home/node$1
  # As after a boot; the images are on what would be a disk.
  awk -v dir="$dir/" '$1 != "hearth-kube" && index($2, dir) == 1 { print $2 }' /proc/mounts | sort -r | xargs --no-run-if-empty umount --lazy
  rm -rf "$dir/containerd-state" "$dir/containerd.sock"
  ip link set "node$n" up
  node_up "$n"
}

# The cluster ends with its machine, and its logs with both.
trap '(($? == 0)) || tail -n 5 "$home"/*.log >&2' EXIT

case ${1:-} in
  up) up ;;
  load) load "$2" ;;
  off) off "$2" ;;
  on) on "$2" ;;
  *) log "usage: test/kube/cluster.sh up | load TAR | off NODE | on NODE"; exit 2 ;;
esac
