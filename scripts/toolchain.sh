#!/usr/bin/env bash
# Builds programs that test machines cannot download from their published Go modules, and prints the directory whose bin/ contains
# them: the pulumi command, and the Caddy named in infra/images/images.ts, for the edge's stand-in image. Idempotent; the output is
# outside the clone. The first build takes about twelve and three minutes on two cores.
#
# Only pulumi's engine: the Node language host and the docker and postgresql plugins are not available as Go modules, so tests use
# doubles of them (test/infra/doubles).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${XDG_CACHE_HOME:-$HOME/.cache}/hearth/toolchain
export CGO_ENABLED=0 GOFLAGS=-mod=readonly

log() { printf 'toolchain: %s\n' "$*" >&2; }

# Runs a function that builds bin/$1, unless it is up to date.
once() { # program source function
  local want started=$SECONDS
  want=$( (go version && echo "$2") | sha256sum | cut -d' ' -f1)
  [[ ! -x $out/bin/$1 || $(cat "$out/$1.stamp" 2>/dev/null) != "$want" ]] || return 0
  log "building $1 (once)"
  rm -f "$out/$1.stamp"
  "$3"
  echo "$want" >"$out/$1.stamp"
  log "built in $((SECONDS - started)) s"
}

build_pulumi() {
  local version
  cd "$here/toolchain"
  # The version must be that of @pulumi/pulumi in infra/package.json.
  version=$(go list -m -f '{{.Version}}' github.com/pulumi/pulumi/pkg/v3)
  nice go build -p 2 -trimpath -tags osusergo,grpcnotrace \
    -ldflags "-s -w -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=$version" \
    -o "$out/bin/pulumi" github.com/pulumi/pulumi/pkg/v3/cmd/pulumi
}

caddy=$(sed -nE 's|.*library/caddy:([0-9.]+).*|\1|p' "$here/../infra/images/images.ts")
build_caddy() {
  GOBIN=$out/bin nice go install -p 2 -trimpath -ldflags "-s -w" "github.com/caddyserver/caddy/v2/cmd/caddy@v$caddy"
}

command -v go >/dev/null || { log "Go 1.26 is required to build the pulumi command: install Go, or the official pulumi command"; exit 1; }
mkdir -p "$out/bin"
once pulumi "$(cat "$here"/toolchain/{go.mod,go.sum,tools.go})" build_pulumi
once caddy "$caddy" build_caddy
echo "$out"
