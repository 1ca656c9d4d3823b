#!/usr/bin/env bash
# Builds programs that test machines cannot download from their published Go modules, and prints the directory whose bin/ contains
# them: the pulumi command, the Caddy named in infra/images/images.ts, for the edge's stand-in image, and a Kubernetes cluster with
# Helm and CoreDNS. Idempotent; the output is outside the clone. The first build takes about 12, 3 and 17 minutes on one core.
# `python` installs the packages of test/clients/requirements.txt, and its directory is python/ in the one printed. `agents` installs
# the programs of test/agents/programs from npm and PyPI (2 GB) below agents/. `peers` installs the gateways that `npm run bench`
# compares with: that of test/bench/peers from npm below peers/, and `python`, which has LiteLLM.
#
# usage: scripts/toolchain.sh [pulumi] [caddy] [kube] [coredns] [helm] [python] [agents] [peers]       the first five by default
#
# Only pulumi's engine: the Node language host and the docker and postgresql plugins are not available as Go modules, so tests use
# doubles of them (test/infra/doubles).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${XDG_CACHE_HOME:-$HOME/.cache}/hearth/toolchain
export CGO_ENABLED=0 GOFLAGS=-mod=readonly

log() { printf 'toolchain: %s\n' "$*" >&2; }

# Runs a command that creates the file $1, unless it is up to date.
once() { # file source command...
  local program=${1##*/} want started=$SECONDS
  exec 9>"$out/$program.lock"
  flock 9
  want=$(echo "$2" | sha256sum | cut -d' ' -f1)
  [[ ! -x $out/$1 || $(cat "$out/$program.stamp" 2>/dev/null) != "$want" ]] || return 0
  log "building $program (once)"
  rm -f "$out/$program.stamp"
  "${@:3}"
  echo "$want" >"$out/$program.stamp"
  log "built in $((SECONDS - started)) s"
}

# The same for a program that go builds.
once_built() { # program source command...
  command -v go >/dev/null || { log "Go 1.26 is required to build $1: install Go"; exit 1; }
  once "bin/$1" "$(go version && echo "$2")" "${@:3}"
}

# A program whose module can be installed as published.
install() { # package@version
  once_built "$(basename "${1%@*}")" "${1##*@v}" env GOBIN="$out/bin" nice go install -p 2 -trimpath -ldflags "-s -w" "$1"
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

build_kube() {
  local version major minor name flags='-s -w'
  cd "$here/toolchain/kube"
  version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
  # Charts and clients read the version in these three variables.
  IFS=. read -r major minor _ <<<"${version#v}"
  for name in "Version=$version" "Major=$major" "Minor=$minor"; do flags+=" -X k8s.io/component-base/version.git$name"; done
  nice go build -p 2 -trimpath -ldflags "$flags" -o "$out/bin/kube" .
  for name in kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubectl; do ln -sf kube "$out/bin/$name"; done
}

# Exactly these packages; those that are there already are kept. Only wheels: nothing that a package brings runs before a test imports it.
install_python() { # directory requirements
  # Outside of a virtual environment, pip would change the computer's own packages.
  local pip=("$1/bin/python3" -m pip --require-virtualenv --quiet --disable-pip-version-check) installed others
  if ! installed=$("${pip[@]}" freeze --local 2>/dev/null); then
    rm -rf "$1"
    python3 -m venv "$1"
    installed=
  fi
  others=$(grep -vixFf "$2" <<<"$installed" | sed '/^$/d' || true)
  [[ -z $others ]] || "${pip[@]}" uninstall --yes $others
  nice "${pip[@]}" install --no-deps --only-binary :all: --no-compile -r "$2"
}

# The programs of package-lock.json, with the scripts that package.json allows. Not by `npm ci`: the lock lacks OpenCode's packages for
# systems other than that on which it was written.
install_npm() { # directory source
  rm -rf "$1"
  mkdir -p "$1"
  cp "$2"/package.json "$2"/package-lock.json "$1"
  nice npm install --prefix "$1" --no-audit --no-fund --loglevel error >&2
}

python_clients() {
  require_python
  once python/bin/python3 "$(python3 --version && cat "$requirements")" install_python "$out/python" "$requirements"
}

require_python() {
  command -v python3 >/dev/null || { log "Python 3.10 or newer is required: install python3 and python3-venv"; exit 1; }
}

requirements=$here/../test/clients/requirements.txt
agents=$here/../test/agents/programs
peers=$here/../test/bench/peers
caddy=$(sed -nE 's|.*library/caddy:([0-9.]+).*|\1|p' "$here/../infra/images/images.ts")

mkdir -p "$out/bin"
(($#)) || set -- pulumi caddy kube coredns helm
for program in "$@"; do
  case $program in
    pulumi) once_built pulumi "$(cat "$here"/toolchain/{go.mod,go.sum,tools.go})" build_pulumi ;;
    caddy) install "github.com/caddyserver/caddy/v2/cmd/caddy@v$caddy" ;;
    kube) once_built kube "$(cat "$here"/toolchain/kube/{go.mod,go.sum,main.go})" build_kube ;;
    coredns) install github.com/coredns/coredns@v1.15.0 ;;
    helm) install helm.sh/helm/v3/cmd/helm@v3.22.0 ;;
    python) python_clients ;;
    agents)
      require_python
      once agents/npm/node_modules/.bin/claude "$(cat "$agents"/package{,-lock}.json)" install_npm "$out/agents/npm" "$agents"
      for name in aider llm; do
        once "agents/$name/bin/$name" "$(python3 --version && cat "$agents/$name.txt")" \
          install_python "$out/agents/$name" "$agents/$name.txt"
      done
      ;;
    peers)
      once peers/node_modules/.bin/gateway "$(cat "$peers"/package{,-lock}.json)" install_npm "$out/peers" "$peers"
      python_clients
      ;;
    *) log "usage: scripts/toolchain.sh [pulumi] [caddy] [kube] [coredns] [helm] [python] [agents] [peers]"; exit 2 ;;
  esac
done
echo "$out"
