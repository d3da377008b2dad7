#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages of a build, installs them into a root of their own, and uses them: the
# binary, its manual pages and completions, and the library with the link lines of README.md.
#   package_test.sh BUILD_DIRECTORY COMPILER VERSION README
set -euo pipefail

build=$1
compiler=$2
version=$3
readme=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cpack --config "$build/CPackConfig.cmake" -B "$scratch/packages" >"$scratch/cpack.txt" 2>&1 ||
  { cat "$scratch/cpack.txt"; exit 1; }
cd "$scratch/packages"
for name in once libonce0.1 libonce-dev; do
  [ "$(dpkg-deb -f "$name"_*.deb Version)" = "$version" ] || { echo "no package $name"; exit 1; }
done
# What was linked is found in the packages that hold it.
dpkg-deb -f once_*.deb Depends | grep -q librdkafka1
dpkg-deb -f libonce0.1_*.deb Depends | grep -q libpq5
echo "packages: ok"

root=$scratch/root
mkdir -p "$root" "$scratch/db/updates" "$scratch/db/info"
: >"$scratch/db/status"
: >"$scratch/db/available"
dpkg --admindir="$scratch/db" --instdir="$root" --force-not-root --force-depends \
  --force-script-chrootless --log=/dev/null -i ./*.deb >"$scratch/dpkg.txt" 2>&1 ||
  { cat "$scratch/dpkg.txt"; exit 1; }
"$root/usr/bin/once" --version | grep -q "$version"
[ -s "$root/usr/share/man/man1/once-run.1" ] || [ -s "$root/usr/share/man/man1/once-run.1.gz" ]
bash -n "$root/usr/share/bash-completion/completions/once"
grep -q 'ExecStart=once run' "$root/usr/lib/systemd/system/once@.service"
echo "binary: ok"

# The program and the link line of README.md, with nothing but these packages.
sed -n '/^```cpp$/,/^```$/p' "$readme" | sed '1d;$d' >"$scratch/shop.cc"
export PKG_CONFIG_PATH=$root/usr/lib/pkgconfig
export CMAKE_PREFIX_PATH=$root/usr
line=$(grep -m1 '^    g++ .*shop.cc' "$readme" | sed 's/^    g++//; s/ -o shop$//')
[ -n "$line" ] || { echo "README.md has no link line"; exit 1; }
cd "$scratch"
eval "$compiler $line -o shop"
ldd shop | grep -q libonce && echo "linked with the shared library"
LD_LIBRARY_PATH=$root/usr/lib ./shop || [ $? -eq 3 ] # it has no topic here, and says so
readelf -d shop | grep -q 'libonce.so.0.1'
echo "README's link line: ok"
