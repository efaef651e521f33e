#!/bin/sh
# Starts a server without data with the settings that are to come, and ends it again. What it says when it does not start is
# the Pod's last word, with the code by which the Job knows that another attempt is of no use.
set -eu
PATH="/usr/lib/postgresql/$PGMAJOR/bin:/usr/local/bin:$PATH"
data="${SCRATCH:-/tmp}/check"
log="$data.log"

refuse() {
    # What the server says of its settings; without that, the end of what it said.
    word=$(grep -E 'FATAL|PANIC|ERROR|parameter|syntax|invalid|outside' "$log" | tail -n 8)
    [ -n "$word" ] || word=$(tail -n 8 "$log")
    echo "$word" >&2
    printf '%s' "$word" > "${TERMINATION_LOG:-/dev/termination-log}"
    exit 78
}

rm -rf "$data"
initdb --pgdata="$data" --username=postgres --auth=trust --no-sync > "$log" 2>&1 || { cat "$log" >&2; exit 1; }
printf '%s\n' "$SETTINGS" > "$data/candidate.conf"
postgres -D "$data" -c config_file="$data/candidate.conf" -C max_connections 2> "$log" > /dev/null || refuse
pg_ctl --pgdata="$data" --wait --timeout=120 --log="$log" start \
    --options="-c config_file=$data/candidate.conf -c hba_file=$data/pg_hba.conf -c ident_file=$data/pg_ident.conf \
    -c listen_addresses='' -c unix_socket_directories=${SCRATCH:-/tmp} -c logging_collector=off \
    -c log_destination=stderr" > /dev/null 2>&1 || refuse
pg_ctl --pgdata="$data" --wait --mode=immediate stop > /dev/null
rm -rf "$data"
