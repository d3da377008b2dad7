#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages of the named groups (see packages.txt), if one is missing.
#   tools/install_packages.sh build test
set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
wanted=()
for group in "$@"; do
  found=$(sed -n "s/^$group: *//p" "$here/packages.txt")
  if [ -z "$found" ]; then
    echo "install_packages: $here/packages.txt has no group \"$group\"" >&2
    exit 2
  fi
  read -r -a names <<<"$(echo "$found" | tr '\n' ' ')"
  wanted+=("${names[@]}")
done

if ! command -v dpkg-query >/dev/null; then
  echo "install_packages: not a Debian system; these must be there: ${wanted[*]}" >&2
  exit 0
fi

# dpkg-query fails when it has never heard of one of the names; what it does know, it prints.
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null || true)
missing=()
for name in "${wanted[@]}"; do
  grep -qx "installed $name" <<<"$installed" || missing+=("$name")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "install_packages: missing: ${missing[*]}; install them as root, sudo is not here" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "install_packages: installing ${missing[*]}"
"${as_root[@]}" apt-get -qq update
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get -qq -y install --no-install-recommends "${missing[@]}" >/dev/null
