# SPDX-License-Identifier: Apache-2.0
#
# What sonde must do on every kernel. Runs in the guest, by busybox, as root; prints lines
# "TAP: ok - name" that the host counts. Each check is a function that says with its status
# whether all is well, and leaves its evidence in $out for when it is not.

out=/tmp/out
online=/sys/devices/system/cpu/online

only=$(sed -n 's/.*only=\([^ ]*\).*/\1/p' /proc/cmdline)
check() { # name function
	echo "$2" | grep -qE "^($only)" || return 0
	if (trap 'kill $workers 2>/dev/null' EXIT; $2) >$out 2>&1; then
		echo "TAP: ok - $1"
	else
		echo "TAP: not ok - $1"
		tail -n 25 $out | sed 's/^/TAP: # /'
		false
	fi
}

# Starts a workload in the background, to be stopped when the check ends.
workers=
start() {
	"$@" >/dev/null 2>&1 &
	last=$!
	workers="$workers $last"
}

# Samples whose line matches a pattern, of a folded file: "comm;outer;...;leaf count".
samples() { awk -v re="$1" '$0 ~ re { n += $NF } END { print n + 0 }' "$2" || echo 0; }

# Whether a is within d of b; whether a >= b.
near() { awk -v a="$1" -v b="$2" -v d="$3" 'BEGIN { exit !(a - b <= d && b - a <= d) }'; }
at_least() { [ "$1" -ge "$2" ] || { echo "only $1 of $2 wanted"; false; }; }

# K-01: what each clang makes of the programs.
clangs() {
	bad=0
	for object in /objects/*.o; do
		echo "$object"
		bpf_insns -c "$object" || bad=1
	done
	return $bad
}

loads() {
	start split -t 20
	sonde record -a -d 2 -o all.pb.gz && sonde report --sort sym all.pb.gz
}

# Shares among the three functions, against what the program measured of itself, within 5
# points: 4 standard deviations of 1700 samples. What interrupts a function counts as its own.
shares() {
	split -t 60 >truth.json &
	last=$!
	sonde record -F 199 -p $last -d 15 -o shares.folded || return 1
	kill $last && wait $last
	cat shares.folded truth.json
	shares_true shares.folded
}

shares_true() { # folded
	all=$(samples ';hot_' "$1")
	at_least "$all" 600 || return 1
	cpu=$(for f in hot_60 hot_30 hot_10; do truth $f; done | awk '{ n += $1 } END { print n }')
	for f in hot_60 hot_30 hot_10; do
		have=$(samples ";$f[; ]" "$1")
		awk -v f=$f -v have="$have" -v all="$all" -v true="$(truth $f)" -v cpu="$cpu" 'BEGIN {
			a = 100 * have / all; b = 100 * true / cpu
			printf "%s: %.1f %% of %d samples, in truth %.1f %%\n", f, a, all, b
			exit !(a - b <= 5 && b - a <= 5) }' || return 1
	done
}

truth() { sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" truth.json; }

callers() { # [folded]
	all=$(samples ';hot_60[; ]' "${1:-shares.folded}")
	n=$(samples ';main;.*;hot_60[; ]' "${1:-shares.folded}")
	echo "$n of $all have main"
	at_least "$all" 100 && at_least "$n" $((all * 95 / 100))
}

report_columns() {
	start split -t 60
	sonde record -p $last -d 3 -o columns.pb.gz && sonde report --sort sym columns.pb.gz >columns.txt || return 1
	cat columns.txt
	awk '/hot_60/ && $1 ~ /^[0-9.]+%$/ && $2 > 0 { good = 1 } END { exit !good }' columns.txt
}

# K-05: there is no PMU here, and profile and summary must say what was measured instead.
cpu_clock() {
	sonde record -a -d 1 -o clock.pb.gz >clock.txt 2>&1 || return 1
	sonde report clock.pb.gz >>clock.txt 2>&1
	cat clock.txt
	grep -qi 'cpu-clock' clock.txt
}

kernel_mode() {
	start in_kernel 60
	sonde record -F 99 -p $last -d 5 -o kernel.folded || return 1
	cat kernel.folded
	inside=$(samples 'call_kernel;.* [0-9]+$' kernel.folded)
	at_least "$inside" 100 || return 1
	n=$(samples 'main;call_kernel;.* [0-9]+$' kernel.folded)
	echo "$n of $inside samples in the kernel have the user stack"
	at_least "$n" $((inside * 95 / 100))
}

# K-02: the list of online CPUs has a hole, and more CPUs are possible than there are.
offline_cpu() {
	echo 0 >/sys/devices/system/cpu/cpu1/online
	highest=$(sed 's/.*[-,]//' $online)
	cat $online /sys/devices/system/cpu/possible
	start taskset -c "$highest" split -t 60
	sonde record -F 99 -a -d 5 -o hole.folded || return 1
	cat hole.folded
	at_least "$(samples '^split;.*hot_' hole.folded)" 200
}

cpu_comes_online() {
	grep -q 1 /sys/devices/system/cpu/cpu1/online && echo 0 >/sys/devices/system/cpu/cpu1/online
	sonde record -F 99 -a -d 12 -o follow.folded &
	recorder=$!
	sleep 3
	echo 1 >/sys/devices/system/cpu/cpu1/online
	start taskset -c 1 split -t 60
	wait $recorder || return 1
	cat follow.folded
	at_least "$(samples '^split;.*hot_' follow.folded)" 300
}

cpu_goes_offline() {
	start taskset -c 1 split -t 60
	sonde record -F 99 -a -d 8 -o leave.folded &
	recorder=$!
	sleep 3
	echo 0 >/sys/devices/system/cpu/cpu1/online
	wait $recorder || return 1
	echo 1 >/sys/devices/system/cpu/cpu1/online
	cat leave.folded
	at_least "$(samples '^split;.*hot_' leave.folded)" 300
}

cgroup_filter() {
	mkdir -p /sys/fs/cgroup/a/b
	start outside -t 60
	start inside -t 60
	echo $last >/sys/fs/cgroup/a/cgroup.procs
	start below -t 60
	echo $last >/sys/fs/cgroup/a/b/cgroup.procs
	sonde record -F 99 --cgroup /sys/fs/cgroup/a -d 5 -o cgroup.folded || return 1
	cat cgroup.folded
	at_least "$(samples '^inside;' cgroup.folded)" 100 &&
		at_least "$(samples '^below;' cgroup.folded)" 100 &&
		near "$(samples '^outside;' cgroup.folded)" 0 0
}

# What a row of the report must say of a command: container, pod, unit; the rows are one word each.
says() { # command container pod unit
	awk -v want="$1 $2 $3 $4" '$3 == substr(want, 1, index(want, " ") - 1) {
		n++; all += $2; have = $3 " " $4 " " $5 " " $6; if (have == want) good += $2; else print "not " have }
		END { print good + 0, "of", all + 0, want; exit !(all > 50 && good == all) }' who.txt
}

record_who() {
	sonde record -F 99 -a -d 5 -o who.pb.gz || return 1
	sonde report --sort comm,container,pod,unit who.pb.gz >who.txt
	cat who.txt
}

pod=5c1a6e7b-0d2f-4c3e-9a8b-7f6e5d4c3b2a
id_a=8b0a3d5f1c7e92468b0a3d5f1c7e92468b0a3d5f1c7e92468b0a3d5f1c7e9246
id_b=00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff

put() { # program group...: starts it, in these groups
	program=$1
	shift
	start $program -t 60
	for group; do mkdir -p $group && echo $last >$group/cgroup.procs || return 1; done
}

# M-01, all under v2: a pod's container, docker by systemd with a group of its own, a service.
containers_v2() {
	v2=/sys/fs/cgroup
	put inside $v2/kubepods/burstable/pod$pod/$id_a && put below $v2/system.slice/docker-$id_b.scope/init &&
		put outside $v2/system.slice/ssh.service || return 1
	record_who || return 1
	says inside $id_a $pod - && says below $id_b - - && says outside - - ssh.service
}

# M-01: under v1 alone (v2 has the root), and hybrid, where v2 still has the runtime's service.
containers_v1() {
	mkdir -p /v1
	echo -pids >/sys/fs/cgroup/cgroup.subtree_control
	# The kernel lets go of a controller a while after its last use.
	until mount -t cgroup -o pids none /v1; do
		tries=x$tries
		[ ${#tries} -lt 50 ] && sleep 0.2 || return 1
	done
	put inside /v1/kubepods/pod$pod/$id_a && put outside /v1/system.slice/ssh.service &&
		put below /v1/docker/$id_b /sys/fs/cgroup/system.slice/containerd.service || return 1
	record_who || return 1
	says inside $id_a $pod - && says below $id_b - - && says outside - - ssh.service
}

# Also one that comes when the recording has begun.
container_filter() {
	put outside /sys/fs/cgroup/docker/$id_b && put inside /sys/fs/cgroup/docker/$id_a || return 1
	sonde record -F 99 --container 8b0a3d5f1c7e -d 8 -o filter.folded &
	recorder=$!
	sleep 4
	put below /sys/fs/cgroup/docker/$id_a/worker || return 1
	wait $recorder || return 1
	cat filter.folded
	at_least "$(samples '^inside;' filter.folded)" 100 &&
		at_least "$(samples '^below;' filter.folded)" 50 &&
		near "$(samples '^outside;' filter.folded)" 0 0
}

# Children that are born after the start of the recording belong to -p as well.
children() {
	start outside -t 60
	start sh -c 'trap "exit" TERM; while :; do inside -t 1; done'
	sonde record -F 99 -p $last -d 6 -o children.folded || return 1
	cat children.folded
	at_least "$(samples '^inside;.*hot_' children.folded)" 200 &&
		near "$(samples '^outside;' children.folded)" 0 0
}

exit_status() {
	sonde record -o status.pb.gz -- split -t 1 -x 7
	status=$?
	echo "exit status $status"
	[ $status = 7 ]
}

# One line, exit status 1, and it says why.
refused() { # pattern command...
	pattern=$1 && shift
	"$@" 2>refused.txt
	status=$?
	echo "exit status $status"
	cat refused.txt
	[ $status = 1 ] && [ "$(grep -c . refused.txt)" = 1 ] && grep -q "$pattern" refused.txt
}

no_btf() {
	mount -t tmpfs none /sys/kernel/btf || return 1
	refused 'no type information.*/sys/kernel/btf/vmlinux' sonde record -a -d 1 -o btf.pb.gz &&
		refused 'no type information' sonde agent --dir /tmp/btf --listen off
	status=$?
	umount /sys/kernel/btf
	return $status
}

# Since 5.11 BPF maps are charged to the memory cgroup, before to the locked memory.
small_memlock() {
	if [ "$(uname -r | awk -F. '{ print ($1 * 1000 + $2 < 5011) }')" = 1 ]; then
		refused 'locked memory is 64 KiB.*LimitMEMLOCK=infinity' \
			limited 64 sonde record -a -d 1 -o lock.pb.gz &&
			refused 'locked memory is 64 KiB' limited 64 sonde agent --dir /tmp/lock --listen off
	else
		limited 64 sonde record -a -d 1 -o lock.pb.gz
	fi
}

# ---- the agent beside a mixed load ----

soak=$(sed -n 's/.*soak=\([0-9]*\).*/\1/p' /proc/cmdline)

# New processes all the time, of a few files: symbols of ever new ones would fill their budget.
fork_storm() {
	while :; do
		inside -t 0.02
		i=$(((i + 1) % 16))
		[ -e copy$i ] || cp /bin/split copy$i
		./copy$i -t 0.02
		dd if=/dev/zero of=filler bs=64k count=8 2>/dev/null
		rm -f filler
	done
}

# Largest value of a column in one half of the series, whose rows are "rss_kib fds".
peak() { # column first-share last-share
	awk -v c="$1" -v a="$2" -v b="$3" '{ v[NR] = $c } END {
		for (i = int(NR * a) + 1; i <= NR * b; i++) if (v[i] > m) m = v[i]; print m + 0 }' series
}

# The sum of a counter over all profiles of the store.
stored() {
	for file in store/profiles/*/*.gz; do
		sonde report "$file" 2>/dev/null | sed -n "s/^# *sonde[.]$1[=:] *\([0-9]*\).*/\1/p"
	done | awk '{ n += $1 } END { print n + 0 }'
}

agent_soak() {
	start split -t 1000
	start fork_storm
	start fork_storm
	sonde agent --dir store -F 99 --collect 5s --window 15s --cpu-budget 100 --listen off 2>agent.log &
	agent=$!
	workers="$workers $agent"
	end=$(($(date +%s) + soak))
	while [ "$(date +%s)" -lt $end ]; do
		sleep 2
		echo "$(awk '/^VmRSS/ { print $2 }' /proc/$agent/status) $(ls /proc/$agent/fd | wc -l)"
	done >series
	kill -TERM $agent
	wait $agent
	status=$?
	cat agent.log
	echo "exit status $status, $(wc -l <series) measurements"
	echo "RSS KiB by quarters: $(peak 1 0 0.25) $(peak 1 0.25 0.5) $(peak 1 0.5 0.75) $(peak 1 0.75 1)"
	echo "fds: $(peak 2 0 0.5), second half $(peak 2 0.5 1)"
	for name in expected received missed missed_idle kept idle lost_stacks unknown_processes; do
		eval "$name=$(stored $name)"
		eval "echo $name \$$name"
	done
	[ $status = 0 ] && at_least "$received" $((soak * 99)) &&
		near $((received + missed + missed_idle)) "$expected" 0 &&
		near "$(peak 1 0.75 1)" "$(peak 1 0.5 0.75)" $(($(peak 1 0.5 0.75) / 10)) &&
		at_least $(($(peak 2 0 0.5) + 4)) "$(peak 2 0.5 1)" &&
		near $((lost_stacks + unknown_processes)) 0 0 &&
		near "$(grep -c 'collection: .* after the last one' agent.log)" 0 0 &&
		near "$(grep -E ' (WARN|ERROR) ' agent.log | grep -vc ';.*;')" 0 0 # but doctor's findings
}

check 'programs of each clang load (K-01)' clangs
grep VERIFY $out | sed 's/^/TAP: # /'
if ! check 'loads, attaches, reports' loads; then
	echo 'TAP: # nothing else is tried'
	exit
fi
check 'shares of 60, 30 and 10 %' shares
grep 'in truth' $out | sed 's/^/TAP: # /'
check 'callers up to main' callers
. /unwind.sh
check 'columns of the report' report_columns
check 'no PMU: cpu-clock, and says so (K-05)' cpu_clock
check 'user stacks of kernel-mode samples' kernel_mode
check 'offline CPU, highest CPU busy (K-02)' offline_cpu
check 'CPU that comes online is followed (K-02)' cpu_comes_online
check 'CPU that goes offline stops nothing (K-02)' cpu_goes_offline
check 'cgroup filter takes the subtree and nothing else' cgroup_filter
check 'containers and services under cgroup v2 (M-01)' containers_v2
grep ' of ' $out | sed 's/^/TAP: # /'
check '--container, also what comes later' container_filter
check 'containers and services under v1, and hybrid (M-01)' containers_v1
grep ' of ' $out | sed 's/^/TAP: # /'
check 'children of -p' children
check 'exit status of the command' exit_status
check 'no type information (BTF): one line, exit status 1' no_btf
check 'little memory to lock, and no right to raise it (K-03)' small_memlock
. /sched.sh
if [ "${soak:-0}" -gt 0 ]; then
	check "the agent beside a mixed load for $soak s: memory and fds flat, none late, books closed" agent_soak &&
		sed -n '/^exit status/,$p' $out | sed 's/^/TAP: # /'
fi
. /nmi.sh
