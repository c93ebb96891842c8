#!/bin/sh
# Start the server, or any other command: `docker run IMAGE [file.conf] [--option value ...]`.
# Also as people write it for the image of Redis: `docker run IMAGE redis-server /etc/redis.conf`.
set -eu

case "${1:-}" in
'' | -* | *.conf | check-aof | check-snapshot | import | export) set -- headrace "$@" ;;
redis-server)
    shift
    set -- headrace "$@"
    ;;
esac

[ "$1" = headrace ] || exec "$@"
case "${2:-}" in
check-aof | check-snapshot | import | export | --version | -v | --help | -h) exec "$@" ;;
esac

# A container is reached from outside, so it listens everywhere unless told otherwise. Whatever the
# user says, wherever it stands, comes later and wins.
file=
last=
for word in "$@"; do last=$word; done
case "${2:-}" in
'' | -*) ;;
*) file=$2 ;;
esac
says() { [ -n "$file" ] && grep -Eiqs "$1" "$file"; }
if [ "${2:-}" = - ] || [ "$last" = - ] || [ -n "${HEADRACE_DEFAULTS:-}" ] ||
    says "^[[:space:]]*(include[[:space:]]|[^[:space:]#]*[\"'])"; then
    # Standard input, and the files that a file includes, are only known to the server.
    HEADRACE_DEFAULTS="bind * -::*
protected-mode no
${HEADRACE_DEFAULTS:-}"
    export HEADRACE_DEFAULTS
else
    shift
    [ -z "$file" ] || shift
    says '^[[:space:]]*protected-mode[[:space:]]' || set -- --protected-mode no "$@"
    says '^[[:space:]]*bind[[:space:]]' || set -- --bind '* -::*' "$@"
    [ -z "$file" ] || set -- "$file" "$@"
    set -- headrace "$@"
fi

exec "$@"
