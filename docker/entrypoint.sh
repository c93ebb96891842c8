#!/bin/sh
# Start the server, or any other command: `docker run IMAGE [file.conf] [--option value ...]`.
# Also as people write it for the image of Redis: `docker run IMAGE redis-server /etc/redis.conf`.
# As `redis-server` on the PATH it is what scripts start: `sh -c "redis-server --port 7000"`.
set -eu

# Process 1 hears no signal that it has not asked for.
trap 'exit 0' TERM INT
case "$0" in */redis-server) set -- redis-server "$@" ;; esac
case "${1:-}" in
'' | -* | *.conf | check-aof | check-snapshot | import | export) set -- headrace "$@" ;;
redis-server)
    shift
    set -- headrace "$@"
    ;;
esac

# As in the image of Redis, what is written is the server's alone. Root gives the folder, which may
# come from outside, to the server's user, who goes on; if it has the right to. A script decides itself
# who it is.
[ "$(umask)" != 0022 ] || umask 0077
[ "$1" = headrace ] || exec "$@"
become() { exec setpriv --reuid=headrace --regid=headrace --clear-groups -- "$@"; }
if [ "$(id -u)" = 0 ] && [ "${0##*/}" != redis-server ] && (become true) 2> /dev/null; then
    find . \! -user headrace -exec chown headrace '{}' + || true
    become "$0" "$@"
fi
case "${2:-}" in
check-aof | check-snapshot | import | export | --version | -v | --help | -h) exec "$@" ;;
esac

# A container is reached from outside, so it listens everywhere unless told otherwise, and its
# snapshot is what the image of Redis has in this folder. What the user says, wherever it stands,
# comes later and wins.
HEADRACE_DEFAULTS="bind * -::*
protected-mode no
dbfilename dump.rdb
${HEADRACE_DEFAULTS:-}"
export HEADRACE_DEFAULTS
# The server, when it listens to them, is told of the signals that come meanwhile.
exec env --block-signal=TERM,INT "$@"
