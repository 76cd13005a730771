#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Gets the cloud kernel of a Debian suite: fetch.sh SUITE -> build/vm/kernels/SUITE/{vmlinuz,version}
#
# The mirror is the one that this machine's apt uses. The package is found through the
# metapackage, since version numbers vanish from mirrors when newer ones come. A kernel that is
# less than a week old is not asked for again; an older one stays if the mirror does not answer.
set -euo pipefail

suite=$1
dir=$(realpath -m "${BUILD:-build}/vm/kernels/$suite")

[ -z "$(find "$dir/version" -mtime -7 2>/dev/null)" ] || exit 0
mkdir -p "$dir"
. "$(dirname "$0")/apt.sh"

kernel_of() { # a package -> the kernel's package that it depends on
	apt-cache "${options[@]}" depends "$1" |
		awk '$1 == "Depends:" && $2 ~ /^linux-(image|binary)-/ { print $2; exit }'
}

fetch() {
	local package next
	apt-get "${options[@]}" update
	package=$(kernel_of linux-image-cloud-amd64)
	# Since 2026 linux-image-* is itself empty and depends on linux-binary-*.
	next=$(kernel_of "$package")
	package=${next:-$package}
	[ "$package" ] || { echo "no cloud kernel in $suite"; return 1; }
	cd "$apt/cache" && rm -f -- *.deb
	apt-get "${options[@]}" download "$package"
	rm -rf unpacked && mkdir unpacked
	dpkg-deb --fsys-tarfile "$package"_*.deb |
		tar -C unpacked -x --wildcards --no-anchored 'vmlinuz*'
	cp "$(find unpacked -type f -name 'vmlinuz*' | head -n 1)" "$dir/vmlinuz.new"
	mv "$dir/vmlinuz.new" "$dir/vmlinuz"
	sed -E 's/^linux-(image|binary)-//' <<<"$package" >"$dir/version"
	rm -rf unpacked -- *.deb
}

log=$apt/log
fetch >"$log" 2>&1 & # a condition would switch -e off inside the function
if ! wait $!; then
	[ ! -e "$dir/version" ] || exit 0
	log_reason "$log" >&2
	exit 1
fi
