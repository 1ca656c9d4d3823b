#!/bin/bash
# POSTGRES_USER, POSTGRES_PASSWORD, POSTGRES_DB (each also as *_FILE) and /docker-entrypoint-initdb.d/*.sql act on an empty
# data directory only, as in the official image.
set -euo pipefail

from_file() { # the variable NAME, or the content of the file NAME_FILE names
  local file=${1}_FILE
  if [[ -n ${!file:-} ]]; then
    export "$1=$(<"${!file}")"
    unset "$file"
  fi
}

# As the official image: a root start takes the data over and steps down; another user runs as it is.
stepped_down=()
((EUID)) || stepped_down=(setpriv --reuid=postgres --regid=postgres --init-groups)
own() { ((EUID)) || chown -R postgres: "$@"; }

if [[ ${1:-} != postgres ]]; then
  exec "$@"
fi

from_file POSTGRES_USER
from_file POSTGRES_PASSWORD
from_file POSTGRES_DB
: "${POSTGRES_USER:=postgres}"
: "${POSTGRES_DB:=$POSTGRES_USER}"

mkdir -p "$PGDATA"
own /var/lib/postgresql
chmod 700 "$PGDATA"

if [[ ! -s $PGDATA/PG_VERSION ]]; then
  : "${POSTGRES_PASSWORD:?set POSTGRES_PASSWORD or POSTGRES_PASSWORD_FILE}"
  # A file and not a pipe of this shell's: initdb runs as another user.
  pwfile=$(mktemp)
  printf '%s\n' "$POSTGRES_PASSWORD" >"$pwfile"
  own "$pwfile"
  "${stepped_down[@]}" initdb --username="$POSTGRES_USER" --pwfile="$pwfile"
  rm "$pwfile"
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  # On its socket alone, so that a TCP health check stays red until the end.
  "${stepped_down[@]}" pg_ctl --wait start -o "-c listen_addresses=''"
  if [[ $POSTGRES_DB != postgres ]]; then
    "${stepped_down[@]}" psql -v ON_ERROR_STOP=1 --no-password --no-psqlrc --username="$POSTGRES_USER" --dbname=postgres \
      -v db="$POSTGRES_DB" <<<'CREATE DATABASE :"db";'
  fi
  for script in /docker-entrypoint-initdb.d/*.sql; do
    [[ -f $script ]] || continue
    "${stepped_down[@]}" psql -v ON_ERROR_STOP=1 --no-password --no-psqlrc --username="$POSTGRES_USER" \
      --dbname="$POSTGRES_DB" --file="$script"
  done
  "${stepped_down[@]}" pg_ctl --wait --mode=fast stop
fi

exec "${stepped_down[@]}" "$@"
