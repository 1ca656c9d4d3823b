#!/bin/bash
# As the official image: a root start takes the data over and steps down; another user runs as it is.
set -euo pipefail
if [[ ${1:-} == -* || ${1:-} == *.conf ]]; then
  set -- redis-server "$@"
fi
if [[ ${1:-} == redis-server && $EUID -eq 0 ]]; then
  chown -R redis: /data
  exec setpriv --reuid=redis --regid=redis --init-groups "$@"
fi
exec "$@"
