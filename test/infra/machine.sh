#!/usr/bin/env bash
# Machines for the infrastructure scenarios. A machine has its own network, processes and mounts and, at the same addresses and
# paths as every other machine, the hosts A and B of scripts/hosts.sh; so several can run side by side, and a saved state of both
# hosts can be restored in any of them. Whatever is started in a machine ends with it.
#
# usage: test/infra/machine.sh images
#                              builder COMMAND...
#                              run NAME COMMAND...
#                              restore images | STATE      inside a machine, before `scripts/hosts.sh up`
#                              save STATE                  inside a machine, after `scripts/hosts.sh off`
#   images    installs what machines need from Debian's packages and builds the stand-in images that their hosts start with;
#             idempotent
#   builder   runs a command with the engine that has these images (HEARTH_HOST_A); it removes those that it adds
#   run       runs a command on a new machine and deletes the machine afterwards, for example: run try bash
#
# Needs root. HEARTH_TEST_NETWORK=host gives the machine this computer's own network: one machine at a time then.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/hearth
# Where scripts/hosts.sh keeps the state of both hosts: each machine mounts a separate directory there.
HOSTS=$CACHE/hosts
BUILDER=$CACHE/images
STATES=$CACHE/states
ENGINE=$CACHE/engine
export PATH=$ENGINE:$PATH

log() { printf 'machine: %s\n' "$*" >&2; }

install_packages() {
  local missing=()
  command -v dockerd >/dev/null || missing+=(docker.io)
  command -v debootstrap >/dev/null || missing+=(debootstrap)
  command -v docker >/dev/null || missing+=(docker.io)
  command -v iptables >/dev/null || missing+=(iptables)
  command -v ip >/dev/null || missing+=(iproute2)
  [[ -x /usr/sbin/sshd ]] || missing+=(openssh-server)
  [[ -x /usr/lib/cni/bridge ]] || missing+=(containernetworking-plugins)
  command -v etcd >/dev/null || missing+=(etcd-server)
  command -v ssh >/dev/null || missing+=(openssh-client)
  ((${#missing[@]})) || return 0
  command -v apt-get >/dev/null || { log "needs ${missing[*]}: install them and run it again"; return 1; }
  log "installing ${missing[*]}"
  apt-get update -qq >/dev/null
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Debian 12's engine cannot probe the health of a starting container more often than later, so each wait for one takes 10 seconds.
# Debian 13's programs run on Debian 12 (its runc does not) and are kept outside the package system.
fetch_engine() {
  local deb source options
  [[ ! -x $ENGINE/dockerd ]] || return 0
  (($(dockerd --version | sed -E 's/[^0-9]*([0-9]+).*/\1/') < 25)) || return 0
  source=$("$here/stand-ins/build.sh" source)
  log "unpacking the Docker engine of $source"
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  mkdir -p "$scratch"/{lists,archives}/partial "$scratch/engine"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $source main" >"$scratch/sources.list"
  options=(-qq -o "Dir::Etc::SourceList=$scratch/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$scratch/lists"
    -o "Dir::Cache=$scratch" -o Dir::State::Status=/dev/null -o APT::Sandbox::User=root)
  apt-get "${options[@]}" update >/dev/null
  (cd "$scratch" && apt-get "${options[@]}" download docker.io containerd >/dev/null)
  for deb in "$scratch"/*.deb; do dpkg-deb -x "$deb" "$scratch/root"; done
  cp "$scratch"/root/usr/sbin/{dockerd,docker-proxy} "$scratch"/root/usr/bin/{containerd,containerd-shim-runc-v2} "$scratch/engine"
  rm -rf "$ENGINE"
  mv "$scratch/engine" "$ENGINE"
}

# The saved state of a stopped engine. Image layers never change, so they are hard-linked.
copy_engine() { # from to
  local mount
  rm -rf "$2/data"
  mkdir -p "$2/data"
  find "$1/data" -mindepth 1 -maxdepth 1 ! -name overlay2 -exec cp -a -t "$2/data" {} +
  cp -al "$1/data/overlay2" "$2/data/"
  for mount in "$1"/data/image/overlay2/layerdb/mounts/*/mount-id; do
    [[ -e $mount ]] || continue
    mount=$(<"$mount")
    rm -rf "$2/data/overlay2/$mount"
    cp -a "$1/data/overlay2/$mount" "$2/data/overlay2/"
  done
}

# In separate process and mount namespaces, so that a killed engine leaves nothing behind.
isolated() { # unshare's options... program...
  setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc "$@"
}

# With the lock of the images, which machines only read.
builder() { # command...
  mkdir -p "$BUILDER"
  install_packages
  exec 9>"$CACHE/images.lock"
  flock 9
  fetch_engine
  remove_stale
  isolated "$0" builder-isolated "$@"
}

# Images are built in the computer's own network, which has the route to the packages; the engine adds nothing to it.
builder_isolated() { # command...
  local socket=$BUILDER/docker.sock
  rm -rf "$BUILDER/docker.pid" "$BUILDER/exec" "$socket"
  dockerd -H "unix://$socket" --data-root "$BUILDER/data" --exec-root "$BUILDER/exec" --pidfile "$BUILDER/docker.pid" \
    --bridge none --iptables=false </dev/null >"$BUILDER/dockerd.log" 2>&1 &
  timeout 60 bash -c 'until docker -H "unix://$0" version >/dev/null 2>&1; do sleep 0.1; done' "$socket" \
    || { log "the engine that builds images does not start: see $BUILDER/dockerd.log"; return 1; }
  HEARTH_HOST_A=unix://$socket "$@"
  docker -H "unix://$socket" image prune --force >/dev/null
  kill "$(<"$BUILDER/docker.pid")"
  wait
}

# Leftovers of a killed run: names start with the id of the process that created them.
remove_stale() {
  local machine
  for machine in "$CACHE"/machines/*; do
    [[ ! -d $machine || -d /proc/$(basename "$machine" | cut -d- -f1) ]] || remove "$machine"
  done
}

remove() { # machine
  local group
  for group in /sys/fs/cgroup/{,*/}"hearth-$(basename "$1")"; do
    [[ ! -d $group ]] || find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
  done
  rm -rf "$1"
}

run() { # name command...
  local network=(--net) status=0
  machine=$CACHE/machines/$$-$1
  shift
  [[ ${HEARTH_TEST_NETWORK:-} != host ]] || network=()
  mkdir -p "$machine" "$HOSTS"
  trap 'remove "$machine"' EXIT
  isolated "${network[@]}" "$0" enter "$machine" "$@" || status=$?
  # Machines of a cluster have none.
  ((status == 0)) || tail -n 20 "$machine"/[ab]/dockerd.log >&2 2>/dev/null || true
  return $status
}

enter() { # machine command...
  local machine=$1
  shift
  local directory
  # As after a boot: containerd's sockets are named after the containers, which restored hosts share with others.
  for directory in /run/{containerd,docker,netns}; do
    mkdir -p "$directory"
    mount -t tmpfs hearth-run "$directory"
  done
  mount --bind "$machine" "$HOSTS"
  ip link set lo up
  export HEARTH_MACHINE=$machine HEARTH_TEST_HOSTS=$HOSTS
  # Engines and the pulumi command, both written in Go, take more memory and less time.
  export GOGC=400
  # Not `exec`: the first process of a machine collects those that lose their parent.
  "$@"
}

# Links cannot cross the mount of $HOSTS, so states are copied between the directories below it.
restore() { # images | state
  local host
  if [[ $1 == images ]]; then
    exec 9>"$CACHE/images.lock"
    flock -s 9
    for host in a b; do copy_engine "$BUILDER" "$HEARTH_MACHINE/$host"; done
  else
    [[ -d $STATES/$1 ]] || return 1
    touch "$STATES/$1"
    for host in a b; do copy_engine "$STATES/$1/$host" "$HEARTH_MACHINE/$host"; done
    cp -a "$STATES/$1"/{ssh,stack} "$HEARTH_MACHINE/"
  fi
}

save() { # state
  # Not by the process id: each machine counts its own.
  local host new=$STATES/.$(basename "$HEARTH_MACHINE") old
  mkdir -p "$new"
  for host in a b; do copy_engine "$HEARTH_MACHINE/$host" "$new/$host"; done
  cp -a "$HEARTH_MACHINE"/{ssh,stack} "$new/"
  rm -rf "${STATES:?}/$1"
  mv "$new" "$STATES/$1"
  # Three are enough to go back and forth between branches.
  ls -1t "$STATES" | tail -n +4 | while read -r old; do rm -rf "${STATES:?}/$old"; done
  log "saved both hosts as $1"
}

[[ $EUID -eq 0 && $(uname -s) == Linux ]] || { log "needs Linux and root: Docker engines and namespaces are started"; exit 1; }
case ${1:-} in
  images) builder "$here/stand-ins/build.sh" ;;
  builder) builder "${@:2}" ;;
  builder-isolated) builder_isolated "${@:2}" ;;
  run) run "${@:2}" ;;
  enter) enter "${@:2}" ;;
  restore) restore "$2" ;;
  save) save "$2" ;;
  *) log "usage: test/infra/machine.sh images | builder COMMAND... | run NAME COMMAND... | restore STATE | save STATE"; exit 2 ;;
esac
