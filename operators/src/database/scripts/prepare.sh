#!/bin/sh
# Makes a data directory, once: a new one, or one restored from a backup. Everything happens beside its final place,
# and one rename makes it real: a Pod that is killed half-way starts over.
set -eu
PATH="/usr/lib/postgresql/$PGMAJOR/bin:/usr/local/bin:$PATH"

# Every file against the manifest, and whether the WAL can be read, where the image has the program for that.
verify() {
    if [ -x "$(dirname "$(command -v pg_verifybackup)")/pg_waldump" ]; then
        pg_verifybackup "$1"
    else
        pg_verifybackup --no-parse-wal "$1"
    fi
}

# Says why in the Pod's last word, with the code by which the restore's Job knows that another attempt is of no use.
refuse() {
    echo "$1" >&2
    printf '%s' "$1" > "${TERMINATION_LOG:-/dev/termination-log}"
    exit 73
}

# What the data was restored from, and for which Database. It lies within the data, so one rename makes both real.
mark=windlass-restored

if [ -s "$PGDATA/PG_VERSION" ]; then
    found=$(cat "$PGDATA/PG_VERSION")
    if [ -n "${RESTORE_MARK:-}" ]; then
        # This very restore was done before, by a Pod whose end nobody saw.
        [ "$(cat "$PGDATA/$mark" 2> /dev/null)" = "$RESTORE_MARK" ] && exit 0
        refuse "the volume holds data of PostgreSQL $found that this restore did not make"
    fi
    [ "$found" = "$PGMAJOR" ] && exit 0
    echo "the data directory was made by PostgreSQL $found and cannot be opened by $PGMAJOR" >&2
    exit 1
fi
# An empty directory is nothing; files without a version are somebody's, and the rename below would go beside them.
if [ -e "$PGDATA" ] && ! rmdir "$PGDATA" 2> /dev/null; then
    [ -z "${RESTORE_MARK:-}" ] || refuse "the volume holds files in the place of the data that this restore did not make"
    echo "$PGDATA holds files and is no data directory; move them away, or delete the claim" >&2
    exit 1
fi

new="$PGDATA.new"
rm -rf "$new"
mkdir -p "$(dirname "$new")"

if [ "${RESTORE_METHOD:-}" = Physical ]; then
    verify "$RESTORE_FROM/base"
    cp -a "$RESTORE_FROM/base" "$new"
    chmod 0700 "$new"
else
    printf '%s' "$PGPASSWORD" > /tmp/superuser
    initdb --pgdata="$new" --username=postgres --pwfile=/tmp/superuser --auth-local=trust \
        --auth-host=scram-sha-256 --encoding=UTF8 --data-checksums
    rm -f /tmp/superuser
fi

# Nobody reaches this server but the commands below: it has a socket, and no port.
printf 'local all all trust\n' > /tmp/pg_hba.conf
pg_ctl --pgdata="$new" --wait --timeout=3600 --log=/tmp/prepare.log start \
    --options="-c listen_addresses='' -c unix_socket_directories=/tmp -c hba_file=/tmp/pg_hba.conf \
    -c archive_mode=off" || { cat /tmp/prepare.log >&2; exit 1; }

psql() { command psql --host=/tmp --username=postgres --no-psqlrc --set=ON_ERROR_STOP=1 "$@"; }

psql --dbname=postgres --set=password="$PGPASSWORD" <<'SQL'
ALTER ROLE postgres PASSWORD :'password';
SQL
psql --dbname=postgres --set=owner="$APP_OWNER" --set=password="$APP_PASSWORD" <<'SQL'
SELECT format('CREATE ROLE %I LOGIN', :'owner')
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'owner') \gexec
ALTER ROLE :"owner" LOGIN PASSWORD :'password';
SQL
psql --dbname=postgres --set=owner="$APP_OWNER" --set=database="$APP_DATABASE" <<'SQL'
SELECT format('CREATE DATABASE %I OWNER %I', :'database', :'owner')
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'database') \gexec
SQL
# Everything with its owner and its grants, for which the roles must be there. Those that are there stay as they are, and
# the errors about them are no failure; what is missing then is one below. Nobody logs in as a role without a password.
restore_dump() {
    command psql --host=/tmp --username=postgres --no-psqlrc --quiet --dbname=postgres --file="$RESTORE_FROM/roles.sql"
    pg_restore --host=/tmp --username=postgres --dbname="$APP_DATABASE" --exit-on-error "$RESTORE_FROM/dump"
    owner=$(cat "$RESTORE_FROM/owner")
    [ "$owner" = "$APP_OWNER" ] || [ "$owner" = postgres ] ||
        psql --dbname="$APP_DATABASE" --set=old="$owner" --set=owner="$APP_OWNER" <<'SQL'
REASSIGN OWNED BY :"old" TO :"owner";
SQL
}

# A dump of an earlier operator, without roles: all of it belongs to the owner, but for extensions, which not everybody may
# create.
restore_bare_dump() {
    scratch=${SCRATCH:-/tmp}
    pg_restore --list "$RESTORE_FROM/dump" > "$scratch/list"
    grep -E ' EXTENSION - | COMMENT - EXTENSION ' "$scratch/list" > "$scratch/extensions" || true
    grep -v -E ' EXTENSION - | COMMENT - EXTENSION ' "$scratch/list" > "$scratch/rest" || true
    pg_restore --host=/tmp --username=postgres --dbname="$APP_DATABASE" --exit-on-error \
        --use-list="$scratch/extensions" "$RESTORE_FROM/dump"
    pg_restore --host=/tmp --username=postgres --dbname="$APP_DATABASE" --no-owner --role="$APP_OWNER" \
        --exit-on-error --use-list="$scratch/rest" "$RESTORE_FROM/dump"
}

if [ "${RESTORE_METHOD:-}" = Logical ]; then
    if [ -e "$RESTORE_FROM/roles.sql" ]; then restore_dump; else restore_bare_dump; fi
    # The roles' settings came with them; who the owner is, and the passwords, are this Database's.
    psql --dbname=postgres --set=owner="$APP_OWNER" --set=password="$APP_PASSWORD" --set=super="$PGPASSWORD" <<'SQL'
ALTER ROLE :"owner" LOGIN PASSWORD :'password';
ALTER ROLE postgres SUPERUSER LOGIN PASSWORD :'super';
SQL
fi

pg_ctl --pgdata="$new" --wait --mode=fast stop
# A copy of files may bring the mark of its own past.
rm -f "$new/$mark"
[ -z "${RESTORE_MARK:-}" ] || printf '%s\n' "$RESTORE_MARK" > "$new/$mark"
sync
mv "$new" "$PGDATA"
sync
