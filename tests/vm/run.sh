#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Boots Debian's kernels under QEMU with the static program and prints the guests' checks as
# TAP. Always software emulation, with one thread for all CPUs: with several, text patching in
# the guest now and then ends in "Oops: int3" (QEMU 7.2), which is tried again.
# VM_SUITES chooses kernels, VM_ONLY checks (by their functions' names, "a|b"), VM_JOBS how many
# guests run at a time.

cd "$(dirname "$0")/../.." || exit 2
build=${BUILD:-build}
vm=$build/vm
suites=${VM_SUITES:-bullseye bookworm trixie sid}
LIMIT=900 TRIES=2
soak_suites=$VM_SOAK_SUITES # where the agent runs for VM_SOAK_SECONDS beside a load

# The program with BPF programs by the newest clang that is installed here, as sonde-clang-NN.
make_newer() { # directory
	local clang out
	for v in 22 21 20 19 18 17 16 15; do
		clang=clang-$v out=$build/compilers/clang-$v
		command -v $clang >/dev/null || continue
		(unset MAKEFLAGS MFLAGS && make NO_SETUP=1 CLANG=$clang BUILD="$out" static) >"$out.log" 2>&1 &&
			cp "$out/sonde-static" "$1/sonde-$clang"
		return
	done
}

make_initramfs() {
	local root=$vm/root
	rm -rf "$root" && mkdir -p "$root/bin"
	cp "$(command -v busybox)" "$root/bin/busybox"
	cp "$build/sonde-static" "$root/bin/sonde"
	cp "$build/workloads/split-static" "$root/bin/split"
	for name in inside outside below; do # the same program under names that filters can tell apart
		cp "$build/workloads/split-static" "$root/bin/$name"
	done
	cp "$vm/in_kernel" "$vm/limited" "$root/bin/"
	cp "$build/tools/bpf_insns-static" "$root/bin/bpf_insns"
	cp "$build/workloads/deep_small-static" "$root/bin/deep_small"
	cp "$build/workloads/deep_large-static" "$root/bin/deep_large"
	mkdir "$root/objects" # what each clang made of the BPF programs
	tests/lint/test_compilers.sh >/dev/null
	for object in "$build"/compilers/*/gen/x86_64/{sonde,sched}.o; do
		cp "$object" "$root/objects/$(cut -d / -f 1 <<<"${object#"$build/compilers/"}")-$(basename "$object")"
	done
	make_newer "$root/bin"
	cp tests/vm/guest/{checks,sched,unwind,nmi}.sh "$root/"
	cp tests/vm/guest/init "$root/init"
	chmod 755 "$root/init"
	ln -s busybox "$root/bin/sh"
	(cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$vm/initramfs.gz"
}

# The initramfs of one kernel: that of all and the module, or why there is none.
add_module() { # suite
	local extra=$vm/$1.extra why
	rm -rf "$extra" && mkdir -p "$extra"
	if why=$(tests/vm/nmi_pmu/build.sh "$1" 2>&1); then
		cp "$vm/nmi_pmu/$1/nmi_pmu.ko" "$extra/"
	else
		echo "cannot be built: $why" >"$extra/nmi_pmu.why"
	fi
	(cd "$extra" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1) |
		cat "$vm/initramfs.gz" - >"$vm/$1.initramfs.gz"
}

# More CPUs possible (8) than present (4), for what is sized by the one or the other.
boot() { # suite
	local soak=0
	[[ " $soak_suites " != *" $1 "* ]] || soak=${VM_SOAK_SECONDS:-120}
	timeout -k 5 $LIMIT qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot \
		-m 1024 -cpu max -smp 4,maxcpus=8 -accel tcg,thread=single -serial stdio \
		-kernel "$vm/kernels/$1/vmlinuz" -initrd "$vm/$1.initramfs.gz" \
		-append "console=ttyS0 quiet panic=-1 rdinit=/init soak=$soak only=${VM_ONLY:-}" </dev/null 2>&1 | tr -d '\r' >"$vm/$1.console"
}

run_suite() { # suite: writes SUITE.tap, lines without numbers
	local tap=$vm/$1.tap version why
	if ! why=$(tests/vm/fetch.sh "$1" 2>&1); then
		echo "ok - kernel of Debian $1 # SKIP cannot be fetched: $(head -n 1 <<<"$why")" >"$tap"
		return
	fi
	version=$(<"$vm/kernels/$1/version")
	add_module "$1"
	for ((try = 1; try <= TRIES; try++)); do
		boot "$1"
		grep -q 'Oops: int3' "$vm/$1.console" || break
	done
	sed -nE "s/^.*TAP: ((not )?ok - |# )/\1/p" "$vm/$1.console" |
		sed -E "s/^((not )?ok - )/\1${version%%-*}: /" >"$tap"
	if ! grep -q '^TAP: done' "$vm/$1.console"; then
		{ echo "# the end of $vm/$1.console:"; tail -n 25 "$vm/$1.console" | sed 's/^/# /'; } >>"$tap"
		echo "not ok - ${version%%-*}: the guest ends its checks within $LIMIT s" >>"$tap"
	fi
}

make_initramfs || { echo "Bail out! no initramfs"; exit 1; }
for suite in $suites; do
	rm -f "$vm/$suite.tap"
	while [ "$(jobs -rp | wc -l)" -ge "${VM_JOBS:-2}" ]; do wait -n; done
	run_suite "$suite" &
done
wait

cd "$vm" || exit 2
cat $(printf '%s.tap ' $suites) |
	awk '/^(not )?ok - / { n++; sub(/ok -/, "ok " n " -") } { print } /^not ok/ { bad = 1 }
	END { print "1.." n; exit bad }'
