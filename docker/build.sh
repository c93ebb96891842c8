#!/bin/sh
# Build headrace from SOURCE and install it, with what it needs, into a virtual environment PREFIX.
# The Dockerfile's first stage runs this; tests run it without Docker. A wheel of this Python that lies
# in docker/builds is taken as it is, without a compiler: a release's, that was tested before.
set -eu

source=${1:?usage: build.sh SOURCE PREFIX}
prefix=${2:?usage: build.sh SOURCE PREFIX}
python=${PYTHON:-python3}

wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT

if ls "${0%/*}"/*.whl > /dev/null 2>&1; then
    "$python" -m pip wheel --quiet --disable-pip-version-check --wheel-dir "$wheels/own" --no-deps \
        --no-index --find-links "${0%/*}" headrace
    source=$(echo "$wheels"/own/*.whl)
fi
"$python" -m pip wheel --quiet --disable-pip-version-check --wheel-dir "$wheels" "${source}[metrics]"
"$python" -m venv --without-pip "$prefix"
"$python" -m pip --python "$prefix/bin/python" install --quiet --disable-pip-version-check \
    --no-index --find-links "$wheels" "headrace[metrics]"

# An image that is slow because its compiler was missing would be a nasty surprise.
kind=$("$prefix/bin/python" -P -c 'from headrace.server.build import build_kind; print(build_kind())')
wanted=compiled
[ "${HEADRACE_PURE:-0}" != 1 ] || wanted=pure
if [ "$kind" != "$wanted" ]; then
    echo "build.sh: this is a $kind build, wanted a $wanted one" >&2
    exit 1
fi
echo "build.sh: $kind build in $prefix"
