#!/bin/sh
# Takes a backup, checks it, and only then gives it its name: what is there under a name is complete.
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

# The name needs DNS, the address does not; a reference that nobody has resolved is neither.
case "${SERVICE_ADDRESS:-}" in
'' | '$('*) ;;
*) export PGHOSTADDR="$SERVICE_ADDRESS" ;;
esac

all="$BACKUP_ROOT/$BACKUP_KIND"
place="$all/$BACKUP_NAME"
partial="$place.partial"
mkdir -p "$all"

# What was broken off takes room, and nobody writes to it any more: no backup lives longer than its deadline.
find "$all" -mindepth 1 -maxdepth 1 -name '*.partial' -mmin "+$((BACKUP_DEADLINE / 60 + 1))" -exec rm -rf {} +

# Scheduled backups of earlier operators, under the time of their beginning. No DatabaseBackup stands for them, so nobody
# else removes them; they go, the oldest first, as others take their place, and never before there is another.
prune() {
    [ "$BACKUP_KIND" = scheduled ] || return 0
    count=$(find "$all" -mindepth 1 -maxdepth 1 -type d ! -name '*.partial' | wc -l)
    find "$all" -mindepth 1 -maxdepth 1 -type d -name '[0-9]*T[0-9]*Z' | sort |
        head -n "$((count > BACKUP_KEEP ? count - BACKUP_KEEP : 0))" | while read -r old; do
        rm -rf "$old"
    done
}
prune

if [ ! -d "$place" ]; then
    rm -rf "$partial"
    trap 'rm -rf "$partial"' EXIT
    trap 'exit 143' TERM INT
    mkdir "$partial"
    if [ "$BACKUP_METHOD" = Physical ]; then
        pg_basebackup --pgdata="$partial/base" --wal-method=stream --checkpoint=fast \
            --manifest-checksums=SHA256 --no-password
        verify "$partial/base"
    else
        pg_dump --format=custom --file="$partial/dump" --dbname="$APP_DATABASE" --no-password
        pg_restore --list "$partial/dump" > /dev/null
        # A dump names roles and does not hold them. Their passwords stay where they are.
        pg_dumpall --roles-only --no-role-passwords --no-password --file="$partial/roles.sql"
        psql --no-psqlrc --no-password --tuples-only --no-align --dbname="$APP_DATABASE" \
            --command='SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = current_database()' \
            > "$partial/owner"
    fi
    sync
    mv "$partial" "$place"
    trap - EXIT
fi
prune

size=$(du -sk "$place" | cut -f1)
printf '{"name":"%s","sizeKiB":%s}' "$BACKUP_NAME" "$size" > "${TERMINATION_LOG:-/dev/termination-log}"
