#!/bin/sh
# Starts PostgreSQL the way users of the stock image know: a first start makes a cluster from POSTGRES_USER,
# POSTGRES_PASSWORD (or POSTGRES_PASSWORD_FILE) and POSTGRES_DB in PGDATA; any other command runs as it is.
set -eu

case "${1:-postgres}" in
-*) set -- postgres "$@" ;;
esac
[ "$1" = postgres ] || exec "$@"

if [ "$(id -u)" = 0 ]; then
    mkdir -p "$PGDATA" /run/postgresql
    chown -R postgres:postgres "$PGDATA" /run/postgresql
    chmod 700 "$PGDATA"
    # shellcheck disable=SC2016 # the inner shell expands these
    exec su -s /bin/sh postgres -c 'exec "$0" "$@"' "$0" "$@"
fi

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    user=${POSTGRES_USER:-postgres}
    password=${POSTGRES_PASSWORD:-}
    [ -z "${POSTGRES_PASSWORD_FILE:-}" ] || password=$(cat "$POSTGRES_PASSWORD_FILE")
    if [ -z "$password" ]; then
        echo "POSTGRES_PASSWORD is empty: set it, or POSTGRES_PASSWORD_FILE" >&2
        exit 1
    fi
    secret=$(mktemp)
    printf '%s\n' "$password" > "$secret"
    # Word splitting of the arguments is what their writer wants.
    # shellcheck disable=SC2086
    initdb --pgdata="$PGDATA" --username="$user" --pwfile="$secret" --auth-local=trust \
        --auth-host=scram-sha-256 --encoding=UTF8 --locale=C ${POSTGRES_INITDB_ARGS:-}
    rm -f "$secret"
    printf 'host all all all scram-sha-256\nhost replication all all scram-sha-256\n' >> "$PGDATA/pg_hba.conf"
    echo "listen_addresses = '*'" >> "$PGDATA/postgresql.conf"
    pg_ctl --pgdata="$PGDATA" --options="-c listen_addresses='' -c unix_socket_directories=/tmp" --wait start
    database=${POSTGRES_DB:-$user}
    if [ "$database" != postgres ]; then
        psql --host=/tmp --username="$user" --dbname=postgres --quiet --set=name="$database" << 'SQL'
CREATE DATABASE :"name";
SQL
    fi
    for file in /docker-entrypoint-initdb.d/*.sql; do
        [ ! -f "$file" ] || psql --host=/tmp --username="$user" --dbname="$database" --set=ON_ERROR_STOP=1 --file="$file"
    done
    pg_ctl --pgdata="$PGDATA" --mode=fast --wait stop
fi

exec "$@"
