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

name="${BACKUP_NAME:-$(date -u +%Y%m%dT%H%M%SZ)}"
place="$BACKUP_ROOT/$BACKUP_KIND/$name"
if [ ! -d "$place" ]; then
    partial="$place.partial"
    rm -rf "$partial"
    mkdir -p "$partial"
    if [ "$BACKUP_METHOD" = Physical ]; then
        pg_basebackup --pgdata="$partial/base" --wal-method=stream --checkpoint=fast \
            --manifest-checksums=SHA256 --no-password
        verify "$partial/base"
    else
        pg_dump --format=custom --file="$partial/dump" --dbname="$APP_DATABASE" --no-password
        pg_restore --list "$partial/dump" > /dev/null
    fi
    sync
    mv "$partial" "$place"
fi

# Backups that were broken off, and those beyond the number that is kept. On-demand backups stay.
if [ "$BACKUP_KIND" = scheduled ]; then
    cd "$BACKUP_ROOT/scheduled"
    for old in *.partial; do [ -e "$old" ] && rm -rf "$old"; done
    count=$(ls -1 | wc -l)
    ls -1 | sort | head -n "$((count > BACKUP_KEEP ? count - BACKUP_KEEP : 0))" | while read -r old; do
        rm -rf "./$old"
    done
fi

size=$(du -sk "$place" | cut -f1)
printf '{"name":"%s","sizeKiB":%s}' "$name" "$size" > "${TERMINATION_LOG:-/dev/termination-log}"
