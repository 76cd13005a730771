#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A newcomer's first minutes: in a Debian 12 of nothing but git, make and apt, `make run` must
# end with a table of hot functions and `make test` must pass. Needs root; prints TAP.
# The system is made by debootstrap from the mirror that this machine's apt uses, and kept as a
# tar file in build/fresh for a week.

cd "$(dirname "$0")/../.." || exit 2
dir=$(realpath -m "${BUILD:-build}/fresh")
root=$dir/root
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP needs root"; exit 0; }
# Mounts of our own that end with us.
[ "${FRESH_NS:-}" ] || FRESH_NS=1 exec unshare -m --propagation private "$0" "$@"

targets() { # what apt uses for Debian 12: "uri|release|component"
	apt-get indextargets --format '$(REPO_URI)|$(RELEASE)|$(COMPONENT)' 'Created-By: Packages' |
		grep '|bookworm'
}

make_base() {
	[ -n "$(find "$dir/base.tar" -mtime -7 2>/dev/null)" ] && return 0
	local mirror
	mirror=$(targets | awk -F'|' '$2 == "bookworm" { print $1; exit }')
	[ "$mirror" ] || { echo "# apt on this machine has no Debian 12 mirror"; return 1; }
	rm -rf "$root"
	debootstrap --variant=minbase --include=git,make,ca-certificates bookworm "$root" "$mirror" \
		>"$dir/debootstrap.log" 2>&1 || { tail -n 3 "$dir/debootstrap.log" | sed 's/^/# /'; return 1; }
	targets | awk -F'|' '{ print "deb", $1, $2, $3 }' >"$root/etc/apt/sources.list"
	apt-config dump | grep -E '^Acquire::https?::(Proxy|CAInfo)' >"$root/etc/apt/apt.conf.d/90host"
	tar -C "$root" -cf "$dir/base.tar.new" . && mv "$dir/base.tar.new" "$dir/base.tar"
}

# A file system of its own, as a machine has: then paths are what they seem. Where no image can
# be mounted, a bind mount, which is how a container looks.
mount_root() {
	rm -rf --one-file-system "$root" && mkdir -p "$root" || return 1
	rm -f "$dir/disk.img" && truncate -s 12G "$dir/disk.img" && mkfs.ext4 -q -F "$dir/disk.img" &&
		mount -o loop "$dir/disk.img" "$root" && return 0
	echo "# no loop device: a bind mount as the root"
	mount --bind "$root" "$root"
}

unpack() {
	mount_root && tar -C "$root" -xf "$dir/base.tar" || return 1
	mkdir -p "$root/src"
	# The tree as it is, also what is not yet committed, but nothing that was built.
	git -c safe.directory='*' ls-files -co --exclude-standard -z |
		tar --null --ignore-failed-read -T - -cf - | tar -C "$root/src" -xf - || return 1
	cp /etc/resolv.conf "$root/etc/resolv.conf"
	mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" && mount --rbind /dev "$root/dev"
}

# With a new root for good, and not by chroot, in which mounting is not what it is on a machine.
in_root() { # log command...
	local log=$1
	shift
	unshare -m --propagation private sh -c 'cd "$0" && mkdir -p old && pivot_root . old && cd /src &&
		umount -l /old && exec env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C sh -c "$1"' \
		"$root" "$*" >"$log" 2>&1 </dev/null
}

n=0
result() { # status name log
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		tail -n 40 "$3" | sed 's/^/# /'
		echo "not ok $n - $2"
		failed=1
	fi
}

failed=0
mkdir -p "$dir"
echo "1..3"
make_base && unpack
result $? "a Debian 12 with git, make and apt" "$dir/debootstrap.log"
[ $failed = 0 ] || { echo "Bail out! no system to test in"; exit 1; }

in_root "$dir/run.log" "make run"
status=$?
grep -E '^ +[0-9.]+%' "$dir/run.log" | head -n 12 | sed 's/^/# /'
[ "$(grep -cE '^ +[0-9.]+%' "$dir/run.log")" -ge 5 ] || status=1
result $status "make run ends with a table of hot functions" "$dir/run.log"

in_root "$dir/test.log" "make test"
status=$?
grep '^  skip' "$dir/test.log" | sed 's/^/# /'
result $status "make test: $(grep -E '^[0-9]+ passed' "$dir/test.log" | tail -n 1)" "$dir/test.log"
# The bind mounts go first: the files below them are the machine's.
umount -l "$root/proc" "$root/sys" "$root/dev" && umount -l "$root" &&
	rm -rf --one-file-system "$root" "$dir/disk.img"
exit $failed
