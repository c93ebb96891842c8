#!/bin/sh
# Start the server, or any other command: `docker run IMAGE [file.conf] [--option value ...]`.
set -eu

case "${1:-}" in
'' | -* | *.conf) set -- headrace "$@" ;;
esac

# A container is reached from outside, so it listens everywhere unless told otherwise. What the
# user's file or options say comes later, or is left alone, and wins.
if [ "$1" = headrace ] && [ "${2:-}" != - ]; then # standard input cannot be looked into
    shift
    config=
    case "${1:-}" in
    '' | -*) ;;
    *)
        config=$1
        shift
        ;;
    esac
    settings() { [ -n "$config" ] && grep -Eiq "^[[:space:]]*$1[[:space:]]" "$config"; }
    settings protected-mode || set -- --protected-mode no "$@"
    settings bind || set -- --bind '* -::*' "$@"
    [ -z "$config" ] || set -- "$config" "$@"
    set -- headrace "$@"
fi

exec "$@"
