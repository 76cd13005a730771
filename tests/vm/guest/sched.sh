# SPDX-License-Identifier: Apache-2.0
#
# Scheduler accounting on every kernel; read by checks.sh.

# A column of the row of a command, of what `sonde sched record` wrote, in ms.
sched_ms() { # command column
	sonde sched report -n 0 --by comm --comm "$1" --csv sched.pb.gz | awk -F, -v column="$2" '
		NR == 1 { for (i = 1; i <= NF; i++) if ($i == column) at = i }
		NR == 2 { printf "%d\n", $at / 1000000 }'
}

# Percent of the threads' lifetimes that the buckets add up to.
accounted() {
	sonde sched report -n 0 sched.pb.gz | sed -n 's/.*lived (\([0-9.]*\) %).*/\1/p'
}

# K-06, O-02, O-03: the same on all kernels, no idle task, a sleep that began before and goes on.
sched_books() {
	start split -t 60
	start outside -t 60
	start sleep 60
	sonde sched record -d 5 -o sched.pb.gz || return 1
	sonde sched report -n 0 -k sched.pb.gz
	near "$(accounted)" 100 0.5 || return 1
	at_least "$(sched_ms sleep sleep)" 4500 || return 1
	near "$(sched_ms sleep sleep)" "$(sched_ms sleep lifetime)" 20 || return 1
	at_least "$(sched_ms split run)" 1000 || return 1
	sonde sched report -n 0 -k sched.pb.gz | grep -E 'swapper|idle/' && return 1
	return 0
}

# A busy process with a fifth of a CPU is throttled for the rest.
sched_quota() {
	echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
	mkdir -p /sys/fs/cgroup/quota
	echo '20000 100000' >/sys/fs/cgroup/quota/cpu.max
	start inside -t 60
	echo $last >/sys/fs/cgroup/quota/cgroup.procs
	sonde sched record -d 5 -o sched.pb.gz || return 1
	sonde sched report -n 0 sched.pb.gz
	grep throttled /sys/fs/cgroup/quota/cpu.stat
	near "$(accounted)" 100 0.5 || return 1
	near "$(sched_ms inside quota)" $(($(sched_ms inside lifetime) * 8 / 10)) 500
}

sched_stopped() {
	start split -t 60
	until grep -q split /proc/$last/comm; do usleep 10000; done
	kill -STOP $last
	sonde sched record -d 3 -o sched.pb.gz || return 1
	kill -CONT $last
	sonde sched report -n 0 sched.pb.gz
	at_least "$(sched_ms split stopped)" 2500 &&
		near "$(sched_ms split stopped)" "$(sched_ms split lifetime)" 20
}

# A counter of the recording; what is 0 is not shown.
sched_count() { # name
	sonde sched report -n 0 sched.pb.gz | sed -n "s/^# $1=\([0-9]*\)$/\1/p" | grep . || echo 0
}

# A CPU goes, with a busy thread on it, and comes back.
sched_hotplug() {
	start taskset -c 1 split -t 60
	start sleep 60
	sonde sched record -d 6 -o sched.pb.gz &
	recorder=$!
	sleep 2
	echo 0 >/sys/devices/system/cpu/cpu1/online || return 1
	sleep 2
	echo 1 >/sys/devices/system/cpu/cpu1/online
	wait $recorder || return 1
	sonde sched report -n 0 -k sched.pb.gz
	near "$(accounted)" 100 0.5 &&
		near "$(sched_ms sleep sleep)" "$(sched_ms sleep lifetime)" 20 &&
		at_least "$(sched_ms split run)" 1000 &&
		near "$(sched_count read_errors)" 0 0 && near "$(sched_count stale)" 0 0
}

# Off the CPU by stack: the shell waits for its children, which sleep; the last may be itself.
off_stacks() {
	sonde record --off-cpu -a -d 1 -o warm.folded || return 1
	sonde record --off-cpu -o off.folded sh -c 'sleep 1; sleep 1; sleep 1' || return 1
	cat off.folded
	at_least "$(samples '^sleep;.*nanosleep' off.folded)" 1800000000 || return 1
	at_least "$(samples '^sh;.*do_wait' off.folded)" 1800000000
}

# In the agent, under its filter of system calls: wall-clock profiles, and nothing to say.
sched_agent() {
	start sleep 100
	sonde agent --dir wall --collect 1s --window 3s --listen off 2>agent.log &
	agent=$!
	workers="$workers $agent"
	until ls wall/profiles/*/*-wall.pb.gz; do
		kill -0 $agent || return 1
		sleep 1
	done
	kill -TERM $agent
	wait $agent || return 1
	cat agent.log
	grep -q 'scheduler accounting' agent.log && return 1
	sonde report --type wall --folded wall | grep '^sleep;blocked;sleep '
}

check 'scheduler: every thread accounted for (K-06, O-02, O-03)' sched_books
check 'scheduler: throttled by a quota' sched_quota
check 'scheduler: stopped' sched_stopped
check 'scheduler: a CPU goes and comes' sched_hotplug
check 'scheduler: in the agent' sched_agent
check 'off the CPU by stack' off_stacks
