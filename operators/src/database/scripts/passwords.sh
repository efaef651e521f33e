#!/bin/sh
# Keeps the passwords of the server's roles as the Secret says, from the start of the Pod and whenever the kubelet brings
# another content. It speaks to the server over the local socket, where no password is asked for: that of the superuser
# may be the one that was changed.
set -u
PATH="/usr/lib/postgresql/$PGMAJOR/bin:/usr/local/bin:$PATH"
trap 'exit 0' TERM INT
# No log of the server shows a password, whatever its parameters say.
export PGOPTIONS='-c log_statement=none -c log_min_duration_statement=-1 -c log_min_error_statement=panic'

# The line that psql takes away at the end of a command's output is added here, so that a password is what it is.
bring_in_line() {
    psql --host=/tmp --username=postgres --dbname=postgres --no-psqlrc --quiet --set=ON_ERROR_STOP=1 <<'SQL'
\set password `cat "$CREDENTIALS/superuser-password"; echo`
ALTER ROLE postgres PASSWORD :'password';
\set owner `cat "$CREDENTIALS/username"; echo`
\set password `cat "$CREDENTIALS/password"; echo`
ALTER ROLE :"owner" LOGIN PASSWORD :'password';
SQL
}

content() {
    for key in username password superuser-password; do
        cat "$CREDENTIALS/$key" || return
        echo
    done
}

# The script as it was when it began: another one, of another operator, takes over without a restart of the server.
itself=$(sha256sum < "$0")
known=
while :; do
    now=$(sha256sum < "$0") && [ "$now" != "$itself" ] && exec sh "$0"
    wanted=$(content | sha256sum)
    if [ "$wanted" != "$known" ] && content > /dev/null && pg_isready --quiet --host=/tmp && bring_in_line; then
        known=$wanted
        echo "the roles have the passwords of the Secret"
    fi
    sleep 2
done
