#!/bin/sh
PATH="/usr/lib/postgresql/$PGMAJOR/bin:/usr/local/bin:$PATH"
exec pg_isready --quiet --host=127.0.0.1 --username=postgres
