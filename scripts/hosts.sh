#!/usr/bin/env bash
# Two real Docker engines on one Linux machine: host A and host B of the infrastructure tests, which run it inside a machine of
# test/infra/machine.sh.
#
#   host A  this machine's network     unix://$DIR/a/docker.sock                      10.77.0.1
#   host B  a network namespace        tcp://10.77.0.2:2375, ssh://root@10.77.0.2     10.77.0.2
#
# A veth pair joins them, so a port published on 10.77.0.1 is reached from B's containers and the other way round.
# Nothing listens on any other address.
#
# usage: scripts/hosts.sh up | off [b] | status | env
#   up      idempotent
#   off     simulates a power failure of both hosts, or of B; `up` starts them again, and their containers restart automatically
#   env     prints the variables that clients need, for `eval "$(scripts/hosts.sh env)"`
#
# Requires root. HEARTH_TEST_HOSTS is the directory of all state (default: below the user's cache).
set -euo pipefail

DIR=${HEARTH_TEST_HOSTS:-${XDG_CACHE_HOME:-$HOME/.cache}/hearth/hosts}
NETNS=hearth-host-b
A_IP=10.77.0.1
B_IP=10.77.0.2

log() { printf 'hosts: %s\n' "$*" >&2; }
die() { log "$*"; exit 1; }

# The pid in a pidfile, if that process is still the program we started.
live_pid() { # pidfile program
  local pid
  pid=$(cat "$1" 2>/dev/null) || return 1
  [[ $(cat "/proc/$pid/comm" 2>/dev/null) == "$2" ]] && echo "$pid"
}

docker_a() { docker -H "unix://$DIR/a/docker.sock" "$@"; }
docker_b() { docker -H "tcp://$B_IP:2375" "$@"; }

net_up() {
  [[ -e /var/run/netns/$NETNS ]] || ip netns add "$NETNS"
  if ! ip link show hearth-a >/dev/null 2>&1; then
    ip link add hearth-a type veth peer name hearth-b netns "$NETNS"
  fi
  ip addr replace "$A_IP/24" dev hearth-a
  ip link set hearth-a up
  ip -n "$NETNS" addr replace "$B_IP/24" dev hearth-b
  ip -n "$NETNS" link set hearth-b up
  ip -n "$NETNS" link set lo up
}

# nsenter, not `ip netns exec`: the latter mounts a new /sys, which hides the cgroup hierarchies, and dockerd then fails to
# start containers.
in_b() { nsenter --net=/var/run/netns/$NETNS "$@"; }

engine_up() { # name bridge-address address-pool, then the command
  local name=$1 bip=$2 pool=$3 dir=$DIR/$1 link network=(ip)
  shift 3
  [[ $name == a ]] || network=(ip -n "$NETNS")
  if live_pid "$dir/docker.pid" dockerd >/dev/null; then
    return
  fi
  mkdir -p "$dir"
  # Like a reboot clears /run: after a simulated power failure, the engine would mistake other processes for its own by id.
  awk -v exec="$dir/exec/" 'index($2, exec) == 1 {print $2}' /proc/mounts | xargs --no-run-if-empty umount --lazy
  rm -rf "$dir/docker.pid" "$dir/docker.sock" "$dir/exec"
  # And its networks: those of the ended containers would answer at the addresses of the new ones for up to two minutes.
  for link in $("${network[@]}" -o -4 addr show to "$pool" | awk '{print $2}'); do "${network[@]}" link delete "$link"; done
  # The cgroups of the engine's containers are then found, and removed, by the machine's name.
  [[ -z ${HEARTH_MACHINE:-} ]] || set -- "$@" --cgroup-parent "/hearth-$(basename "$HEARTH_MACHINE")"
  # Distinct subnets, so that a wrong route fails instead of reaching a container of the other engine.
  setsid "$@" -H "unix://$dir/docker.sock" --data-root "$dir/data" --exec-root "$dir/exec" \
    --pidfile "$dir/docker.pid" --bip "$bip" --default-address-pool "base=$pool,size=24" \
    </dev/null >"$dir/dockerd.log" 2>&1 &
}

wait_for() { # what, then a command that must come to succeed
  local what=$1
  shift
  for _ in $(seq 200); do
    "$@" >/dev/null 2>&1 && return
    sleep 0.3
  done
  die "$what did not come up; see the logs below $DIR"
}

# Real hosts are reached over ssh, so B has an sshd with a key generated for the run. SetEnv replaces the
# /var/run/docker.sock of a real host.
sshd_up() {
  local dir=$DIR/ssh
  live_pid "$dir/sshd.pid" sshd >/dev/null && return
  mkdir -p "$dir" /run/sshd
  chmod 700 "$dir"
  [[ -f $dir/host_key ]] || ssh-keygen -q -t ed25519 -N '' -f "$dir/host_key"
  [[ -f $dir/id ]] || ssh-keygen -q -t ed25519 -N '' -f "$dir/id"
  cp "$dir/id.pub" "$dir/authorized_keys"
  echo "$B_IP $(cut -d' ' -f1,2 "$dir/host_key.pub")" >"$dir/known_hosts"
  cat >"$dir/sshd_config" <<CONF
ListenAddress $B_IP:22
HostKey $dir/host_key
PidFile $dir/sshd.pid
AuthorizedKeysFile $dir/authorized_keys
# The key directory may lie under a world-writable parent.
StrictModes no
PasswordAuthentication no
PermitRootLogin prohibit-password
# Every API call of a Docker client over ssh is one connection.
MaxStartups 50:30:100
SetEnv DOCKER_HOST=tcp://$B_IP:2375
CONF
  in_b /usr/sbin/sshd -f "$dir/sshd_config" -E "$dir/sshd.log"
}

up() {
  [[ $(uname -s) == Linux ]] || die "two test hosts need Linux"
  [[ $EUID -eq 0 ]] || die "needs root: two Docker engines and a network namespace are started"
  net_up
  engine_up a 172.28.1.1/24 172.28.16.0/20 dockerd
  # An explicit --tls=false avoids the delay that dockerd adds to a plain tcp socket.
  engine_up b 172.28.2.1/24 172.28.32.0/20 \
    nsenter --net=/var/run/netns/$NETNS dockerd -H "tcp://$B_IP:2375" --tls=false
  wait_for "engine A" docker_a version
  wait_for "engine B" docker_b version
  sshd_up
  status
}

# Simulates a power failure of a host: its containers and its engine end without notice.
kill_host() { # name
  local shim
  kill -9 $(pgrep -f "$DIR/$1/exec/containerd/containerd.toml" || true) "$(live_pid "$DIR/$1/docker.pid" dockerd)" 2>/dev/null || true
  for shim in $(pgrep -f "containerd-shim.* -address $DIR/$1/exec/" || true); do
    kill -9 "$shim" $(pgrep -P "$shim" || true) 2>/dev/null || true
  done
}

off() {
  # Its address does not respond either.
  ip link set hearth-a down
  kill_host b
  kill -9 "$(live_pid "$DIR/ssh/sshd.pid" sshd)" 2>/dev/null || true
  [[ ${1:-} == b ]] || kill_host a
  log "${1:-both} off"
}

status() {
  local host rc=0
  for host in a b; do
    # `docker info` alone exits 0 and prints blanks when no engine answers.
    if "docker_$host" version >/dev/null 2>&1; then
      "docker_$host" info --format "host $host: engine {{.ServerVersion}}, cgroup v{{.CgroupVersion}}, {{.ContainersRunning}} running, {{.Images}} images"
    else
      echo "host $host: down"
      rc=1
    fi
  done
  return $rc
}

print_env() {
  cat <<VARS
export HEARTH_TEST_HOSTS=$DIR
export HEARTH_HOST_A=unix://$DIR/a/docker.sock
export HEARTH_HOST_B=tcp://$B_IP:2375
export HEARTH_HOST_B_SSH=ssh://root@$B_IP
export HEARTH_SOCKET_A=$DIR/a/docker.sock
export HEARTH_SOCKET_B=$DIR/b/docker.sock
export HEARTH_SSH_KEY=$DIR/ssh/id
export HEARTH_SSH_KNOWN_HOSTS=$DIR/ssh/known_hosts
VARS
}

case ${1:-} in
  up) up ;;
  status) status ;;
  off) off "${2:-}" ;;
  env) print_env ;;
  *) die "usage: scripts/hosts.sh up | off [b] | status | env" ;;
esac
