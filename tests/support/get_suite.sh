#!/usr/bin/env bash
# Fetches the sources of Debian 13's redis-server, whose tests `make redis-suite` runs, into a folder.
#
#   get_suite.sh FOLDER   FOLDER/tests, FOLDER/src: nothing of it is built or installed
#
# apt verifies the archive. What is there is not fetched again; a failure leaves the folder as it was.
set -euo pipefail

folder=${1:?usage: get_suite.sh FOLDER}
fail() { echo "suite: $*" >&2; exit 1; }
[ ! -e "$folder/tests/test_helper.tcl" ] || exit 0

command -v apt-get > /dev/null || fail "apt-get is not there (Debian and Ubuntu have it)"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keys" ] || fail "$keys is not there: the package debian-archive-keyring brings it"
mirror=$(apt-get indextargets --format '$(SITE) $(ORIGIN)' 2> /dev/null \
    | sed -n '/security/d; s/ Debian$//p' | head -1)
mirror=${mirror:-http://deb.debian.org/debian}

parent=$(mkdir -p "$(dirname "$folder")" && cd "$(dirname "$folder")" && pwd)
new=$(mktemp -d "$parent/.suite-XXXXXX")
trap 'rm -rf "$new"' EXIT
apt="$new/apt"
mkdir -p "$apt"/{lists/partial,cache/archives/partial,debs} "$new/sources"
echo "deb-src [signed-by=$keys] $mirror trixie main" > "$apt/sources.list"
: > "$apt/status"
options=(-qq -o Acquire::Retries=3 -o Acquire::Languages=none -o APT::Sandbox::User=
    -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::Etc::preferencesparts=/dev/null -o Dir::State::status="$apt/status"
    -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache")
echo "suite: fetching into $folder, from $mirror"
apt-get "${options[@]}" update
(cd "$apt/debs" && apt-get "${options[@]}" --download-only --tar-only source redis)
tar -xzf "$apt"/debs/redis_*.orig.tar.gz -C "$new/sources" --strip-components=1
rm -rf "$folder"
mv -T "$new/sources" "$folder"
