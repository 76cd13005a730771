# SPDX-License-Identifier: Apache-2.0
#
# Read by checks.sh at its end: overflows that come as real NMIs, by the module nmi_pmu.

# Each round forks (twice), executes, and ends processes that are targets.
target_storm() { while :; do (:); /bin/true; done; }

nmi_count() { cat /sys/module/nmi_pmu/parameters/$1; }
booked() { awk -v name="$1" '$1 == name { n = $2 } END { print n + 0 }' nmi.txt; }

nmi_figures() {
	for name in raised taken in_nmi_context sampled idle_counter excluded throttled \
		still_pending hit_irqs_off hit_bpf; do
		printf '%s %s ' $name "$(nmi_count $name)"
	done
	echo
}

# The tracepoint programs write `targets` and `exec_files` while the perf-event program, in NMI,
# reads both and writes the rest.
nmi() {
	for cpu in /sys/devices/system/cpu/cpu[2-9]; do
		[ -e "$cpu" ] && echo 0 >"$cpu/online"
	done
	dmesg -c >/dev/null
	insmod /nmi_pmu.ko || return 1
	target_storm >/dev/null 2>&1 &
	storm=$!
	target_storm >/dev/null 2>&1 &
	storms=$storm,$!
	workers="$workers $storm $!"
	split -t 120 >truth.json &
	last=$!
	sonde record -F 2000 -p $last,$storms -d 10 -o nmi.folded 2>nmi.txt
	status=$?
	kill $last && wait $last
	echo "processes started: $(($(sed -n 's/^processes //p' /proc/stat)))"
	nmi_figures
	cat nmi.txt truth.json
	grep bpf_prog nmi.folded | tail -n 3
	dmesg | grep -vE 'taint|smpboot'
	[ $status = 0 ] && at_least "$(nmi_count taken)" 1000 &&
		near "$(nmi_count taken)" "$(nmi_count in_nmi_context)" 0 &&
		near "$(nmi_count taken)" "$(nmi_count raised)" 2
}

# Where each sample went; that the program did not run for one is "missed". More were sampled
# than that: the events go on while the profile is written.
nmi_books() {
	cat nmi.txt
	received=$(booked received) sum=0
	for name in kept idle filtered late overflow_cgroup overflow_total no_state; do
		sum=$((sum + $(booked $name)))
	done
	missed=$(booked missed)
	echo "received $received, their places $sum, missed $missed"
	near "$received" "$sum" 0 && at_least "$received" 1000 &&
		near "$(booked expected)" $((received + missed)) 0 &&
		at_least "$(nmi_count sampled)" $((received + missed)) &&
		at_least $((received / 20)) "$missed"
}

nmi_names() {
	cat nmi.folded truth.json
	shares_true nmi.folded && callers nmi.folded
}

nmi_agent() {
	start target_storm
	sonde agent --dir nmi_store -F 999 --collect 1s --window 2s --cpu-budget 100 --listen off 2>agent.log &
	agent=$!
	workers="$workers $agent"
	wanted=$(($(nmi_count sampled) + 2000)) end=$(($(date +%s) + 60))
	while [ "$(nmi_count sampled)" -lt $wanted ] && [ "$(date +%s)" -lt $end ]; do sleep 1; done
	kill -TERM $agent && wait $agent
	status=$?
	cat agent.log
	nmi_figures
	echo "exit status $status"
	[ $status = 0 ] && at_least "$(nmi_count sampled)" $wanted
}

nmi_trouble() {
	dmesg
	! dmesg | grep -iE 'lockup|stall|oops|BUG:|WARNING:|unknown reason|protection|dazed|call trace'
}

# Last: from here on there is a PMU. A Debian kernel has no lockdep: trouble shows as a lockup.
if ! echo nmi | grep -qE "^($only)"; then
	:
elif [ -e /nmi_pmu.ko ]; then
	check 'perf-event program in NMI, over the tracepoint programs' nmi
	sed -n '/^processes/p; /^raised/p; /^  /p; /^sonde record/p' $out | sed 's/^/TAP: # /'
	check 'NMI: books closed' nmi_books
	check 'NMI: names and shares' nmi_names
	check 'NMI: the agent ends cleanly' nmi_agent
	check 'NMI: no lockup, stall or warning of the kernel' nmi_trouble
else
	echo "TAP: ok - perf-event program in NMI # SKIP module $(cat /nmi_pmu.why)"
fi
