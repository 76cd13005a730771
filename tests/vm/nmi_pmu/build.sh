#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the module for the kernel of a Debian suite that fetch.sh got:
# build.sh SUITE -> build/vm/nmi_pmu/SUITE/nmi_pmu.ko. One line says why when it cannot.
#
# The headers are unpacked, not installed: their makefiles expect each other below /usr. They do
# not stay, being 90 MB for each kernel.
set -euo pipefail

suite=$1
. "$(dirname "$0")/../apt.sh"
source=$(realpath "$(dirname "$0")")
version=$(<"$vm/kernels/$suite/version")
dir=$vm/nmi_pmu/$suite headers=$vm/headers/$suite
log=$dir/log

dependencies() { # of the headers: the other half, and the programs that build with them
	apt-cache "${options[@]}" depends "linux-headers-$version" |
		awk '$1 == "Depends:" && $2 ~ /^linux-(headers|kbuild|compiler)-/ { print $2 }'
}

libraries() { # of these programs
	echo libzstd1
	apt-cache "${options[@]}" depends "$(dependencies | grep kbuild)" |
		awk '$1 == "Depends:" && $2 ~ /^(libc6|libelf1|zlib1g)/ { print $2 }'
}

# A newer suite's programs want a newer libc than this machine has: they get their own.
bring_libraries() {
	local programs program
	programs=$(find usr/lib/linux-kbuild-* -type f -perm -100 -exec sh -c \
		'ldd "$1" 2>&1 | grep -q "not found" && echo "$1"' _ {} \;)
	[ "$programs" ] || return 0
	apt-get "${options[@]}" download $(libraries)
	unpack
	for program in $programs; do
		mv "$program" "$program.own-libc"
		printf '#!/bin/sh\nexec %s --library-path %s:%s %s "$@"\n' \
			"$(find "$headers" -name 'ld-linux-x86-64.so.2' | head -n 1)" \
			"$headers/usr/lib/x86_64-linux-gnu" "$headers/lib/x86_64-linux-gnu" \
			"$headers/$program.own-libc" >"$program"
		chmod 755 "$program"
	done
}

unpack() {
	local package
	for package in *.deb; do
		dpkg-deb -x "$package" .
	done
	rm -f -- *.deb
}

fetch_headers() {
	local packages
	packages=$(dependencies 2>/dev/null) || packages=
	if [ -z "$packages" ]; then
		apt-get "${options[@]}" update
		packages=$(dependencies)
	fi
	rm -rf "$headers" && mkdir -p "$headers"
	cd "$headers"
	apt-get "${options[@]}" download "linux-headers-$version" $packages
	unpack
	bring_libraries
	sed -i "s|/usr/src/|$headers/usr/src/|" "usr/src/linux-headers-$version/Makefile"
}

build() {
	fetch_headers
	cp "$source/nmi_pmu.c" "$dir/"
	echo 'obj-m := nmi_pmu.o' >"$dir/Makefile"
	# Newer kernels were built by a gcc that knows an option which Debian 12's does not.
	make -C "$headers/usr/src/linux-headers-$version" M="$dir" CC=gcc \
		CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT= CONFIG_DEBUG_INFO_BTF_MODULES= modules
	rm -rf "$headers"
}

mkdir -p "$dir"
[ ! "$dir/nmi_pmu.ko" -nt "$source/nmi_pmu.c" ] || [ "$(cat "$dir/version")" != "$version" ] || exit 0
build >"$log" 2>&1 & # a condition would switch -e off inside the function
if ! wait $!; then
	{ grep -E 'error:|not found' "$log" || log_reason "$log"; } | head -n 1 >&2
	exit 1
fi
echo "$version" >"$dir/version"
