#!/usr/bin/env bash
# Builds the pulumi command from its published Go module, for test machines that cannot download the official one, and prints
# the directory whose bin/ holds it. Idempotent; kept outside the clone. About twelve minutes from nothing on two cores.
#
# Only the engine: neither the Node language host nor the docker and postgresql plugins are to be had as Go modules, so tests
# use doubles of them (test/infra/doubles).
set -euo pipefail

module=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/toolchain
out=${XDG_CACHE_HOME:-$HOME/.cache}/hearth/toolchain
export CGO_ENABLED=0 GOFLAGS=-mod=readonly

log() { printf 'toolchain: %s\n' "$*" >&2; }

command -v go >/dev/null || { log "needs Go 1.26 to build the pulumi command: install Go, or the official pulumi command"; exit 1; }
mkdir -p "$out/bin"
want=$( (cd "$module" && cat go.mod go.sum tools.go && go version) | sha256sum | cut -d' ' -f1)
if [[ ! -x $out/bin/pulumi || $(cat "$out/stamp" 2>/dev/null) != "$want" ]]; then
  started=$SECONDS
  log "building the pulumi command (once; about twelve minutes)"
  rm -f "$out/stamp"
  # The version must be that of @pulumi/pulumi in infra/package.json.
  version=$(cd "$module" && go list -m -f '{{.Version}}' github.com/pulumi/pulumi/pkg/v3)
  (cd "$module" && nice go build -p 2 -trimpath -tags osusergo,grpcnotrace \
    -ldflags "-s -w -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=$version" \
    -o "$out/bin/pulumi" github.com/pulumi/pulumi/pkg/v3/cmd/pulumi)
  echo "$want" >"$out/stamp"
  log "built in $((SECONDS - started)) s"
fi
echo "$out"
