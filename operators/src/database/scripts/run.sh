#!/bin/sh
# The server itself, as the first process of its container.
set -eu
PATH="/usr/lib/postgresql/$PGMAJOR/bin:/usr/local/bin:$PATH"
exec postgres -D "$PGDATA" -c config_file=/etc/windlass/postgresql.conf -c hba_file=/etc/windlass/pg_hba.conf
