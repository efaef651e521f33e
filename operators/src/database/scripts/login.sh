#!/bin/sh
# Logs in with everything that the Secret says, as a client does: through the Service. The server may be a moment behind
# the Secret, so it is asked for a while.
set -u
PATH="/usr/lib/postgresql/$PGMAJOR/bin:/usr/local/bin:$PATH"
export PGCONNECT_TIMEOUT=5

# The name needs DNS, the address does not; a reference that nobody has resolved is neither.
case "${SERVICE_ADDRESS:-}" in
'' | '$('*) ;;
*) export PGHOSTADDR="$SERVICE_ADDRESS" ;;
esac

login() {
    PGUSER="$1" PGPASSWORD="$2" psql --no-psqlrc --no-password --quiet --command='SELECT 1' 2>&1 > /dev/null
}

attempt=0
while [ "$attempt" -lt 60 ]; do
    word=$(login "$LOGIN_USER" "$APP_PASSWORD") && word=$(login postgres "$PGPASSWORD") && exit 0
    attempt=$((attempt + 1))
    sleep 1
done
echo "$word" >&2
printf '%s' "$word" > "${TERMINATION_LOG:-/dev/termination-log}"
exit 1
