# SPDX-License-Identifier: Apache-2.0
#
# Whole stacks in the guest, part of checks.sh.

# 30 functions without frame pointers: each one in order, from main down to where it was sampled.
whole_in_order() { # folded command
	awk -v comm="$2" '
		{ n = split(substr($0, 1, length($0) - length($NF) - 1), f, ";") }
		f[1] != comm || f[2] == "[no user stack]" { next }
		{
			for (at = 2; at < n && f[at] != "main"; at++);
			good = f[2] == "_start" && f[at] == "main"
			for (want = 30; ++at <= n && f[at] ~ /^deep_/; want--)
				good = good && f[at] == sprintf("deep_%02d", want)
			all += $NF
			whole += good * $NF
			if (!good) print "not so: " $0
		}
		END { printf "%d of %d stacks of %s in order up to _start\n", whole, all, comm
		      exit !(all > 300 && whole >= 0.999 * all) }' "$1"
}

deep() { # sonde
	for program in deep_small deep_large; do
		start $program -t 60
		"$1" record -F 199 -p $last -d 5 -o deep.folded && whole_in_order deep.folded $program || return 1
		kill $last
	done
}

deep_first() { deep sonde; }
deep_newer() { deep "$(ls /bin/sonde-clang-* | head -n 1)"; }

check '30 functions without frame pointers: whole stacks' deep_first
grep 'in order' $out | sed 's/^/TAP: # /'
if ls /bin/sonde-clang-* >/dev/null 2>&1; then
	check 'the same by a newer clang' deep_newer
	grep 'in order' $out | sed 's/^/TAP: # /'
fi
