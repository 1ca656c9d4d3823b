#!/usr/bin/env bash
# Builds stand-ins for images that a test machine cannot pull, most from Debian's packages, in the engine HEARTH_HOST_A.
# Idempotent: an image whose sources did not change is not built again.
#
#   hearth-test/debian     debootstrap minbase, the base of the others
#   hearth-test/postgres   PostgreSQL 15; volume at /var/lib/postgresql
#   hearth-test/redis      Redis 7.0; volume at /data
#   hearth-test/caddy      the Caddy that infra/images.ts names, from scripts/toolchain.sh
#   hearth-test/haproxy    HAProxy 2.6
#   hearth-test/node       Node 24, the base of our own images
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$here/../../.." && pwd)
SUITE=bookworm

log() { printf 'stand-ins: %s\n' "$*" >&2; }
docker_a() { docker -H "$HEARTH_HOST_A" "$@"; }
image_id() { "$1" image inspect --format '{{.Id}}' "$2" 2>/dev/null; }
source_of() { docker_a image inspect --format '{{index .Config.Labels "hearth-test.source"}}' "$1" 2>/dev/null; }

# One hash for a build context and the base it stands on.
source_hash() { # directory extra...
  (cd "$1" && find . -type f -print0 | sort -z | xargs -0 sha256sum && printf '%s\n' "${@:2}") | sha256sum | cut -c1-16
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The mirror that this machine's own apt uses; empty before an `apt-get update`.
mirror() {
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' "Codename: $SUITE" | head -n 1
}

build_base() {
  if image_id docker_a hearth-test/debian >/dev/null; then
    return
  fi
  log "building hearth-test/debian"
  apt-get update -qq >/dev/null
  command -v debootstrap >/dev/null ||
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap >/dev/null
  # shellcheck disable=SC2046 # no mirror found: debootstrap takes its default
  debootstrap --variant=minbase "$SUITE" "$scratch/root" $(mirror) >"$scratch/debootstrap.log" 2>&1 ||
    { tail -20 "$scratch/debootstrap.log" >&2; return 1; }
  rm -rf "$scratch"/root/var/cache/apt/archives/*.deb "$scratch"/root/var/lib/apt/lists/*
  tar -C "$scratch/root" -c . | docker_a import - hearth-test/debian >/dev/null
  rm -rf "$scratch/root"
}

build() { # name
  local image=hearth-test/$1 context=$scratch/$1 hash
  cp -r "$here/$1" "$context"
  # The packaged Node: the very binary that runs the tests.
  [[ $1 != node ]] || install -m 755 "$project/node_modules/node/bin/node" "$context/node"
  [[ $1 != caddy ]] || install -m 755 "$("$project/scripts/toolchain.sh")/bin/caddy" "$context/caddy"
  hash=$(source_hash "$context" "$(image_id docker_a hearth-test/debian)")
  if [[ $(source_of "$image") == "$hash" ]]; then
    return
  fi
  log "building $image"
  # Host network: the machine's own route to the packages. The classic builder: BuildKit wants a plugin that Debian's
  # docker.io does not bring.
  DOCKER_BUILDKIT=0 docker_a build --quiet --network host --label "hearth-test.source=$hash" --tag "$image" "$context" \
    >/dev/null 2>"$scratch/build.log" || { cat "$scratch/build.log" >&2; return 1; }
}

build_base
for name in postgres redis caddy haproxy node; do build "$name"; done
