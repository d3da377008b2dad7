#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs a build into a scratch prefix and uses it from outside: find_package, pkg-config, the
# binary. An unknown component must be refused with its name.
#   install_test.sh BUILD_DIRECTORY COMPILER VERSION
set -euo pipefail

build=$1
compiler=$2
version=$3
here=$(dirname "$(readlink -f "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cmake --install "$build" --prefix "$scratch/first" >"$scratch/install.txt"
mv "$scratch/first" "$scratch/prefix" # an installed tree can be moved
prefix=$scratch/prefix

cmake -S "$here/consumer" -B "$scratch/consumer" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_COMPILER="$compiler" -DVERSION="$version" --log-level=WARNING >/dev/null
cmake --build "$scratch/consumer" >"$scratch/build.txt" || { cat "$scratch/build.txt"; exit 1; }
[ "$("$scratch/consumer/consumer")" = "fresh duplicate" ]
echo "find_package: ok"

cmake -S "$here/consumer" -B "$scratch/all" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_COMPILER="$compiler" -DVERSION="$version" -DMORE=open --log-level=WARNING >/dev/null
cmake --build "$scratch/all" >"$scratch/build.txt" || { cat "$scratch/build.txt"; exit 1; }
echo "find_package with every adapter: ok"

export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(find "$prefix" -type d -name pkgconfig)
read -r -a flags <<<"$(pkg-config --cflags --libs once-memory)"
"$compiler" -std=c++20 "$here/consumer/main.cc" "${flags[@]}" -o "$scratch/by_pkg_config"
[ "$("$scratch/by_pkg_config")" = "fresh duplicate" ]
[ "$(pkg-config --modversion once)" = "$version" ]
pkg-config --libs once >/dev/null
echo "pkg-config: ok"

if cmake -S "$here/consumer" -B "$scratch/refused" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_COMPILER="$compiler" -DVERSION="$version" -DMORE=teleport \
  >"$scratch/refused.txt" 2>&1; then
  echo "an unknown component was accepted" >&2
  exit 1
fi
grep -q 'once has no component "teleport"' "$scratch/refused.txt"
echo "unknown component: refused"

"$prefix/bin/once" --version | grep -q "$version"
echo "binary: ok"
