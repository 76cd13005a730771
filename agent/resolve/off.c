/* SPDX-License-Identifier: Apache-2.0 */
/* Time off the CPU: what it was spent on as labels, and stacks without the scheduler's own frames. */
#include <string.h>

#include "agent/collect/sched_events.h"
#include "agent/resolve/resolve_private.h"
#include "base/text.h"

/* How deep below the hook the scheduler's last frame may lie. */
enum { MAX_SCHEDULER_FRAMES = 16, NAME_BYTES = 4 * SONDE_COMM_LEN + 1 };

static const struct {
	const char *state, *reason;
} states[SONDE_SCHED_STATE_COUNT] = {
#define X(id, state, reason, text) [SONDE_SCHED_##id] = { state, reason },
	SONDE_SCHED_STATES(X)
#undef X
};

/* Whoever waits for a CPU or for something comes through one of these. */
static const char *const scheduler_frames[] = {
	"__schedule", "schedule", "preempt_schedule", "preempt_schedule_common",
	"preempt_schedule_notrace", "preempt_schedule_irq", "__cond_resched", "_cond_resched", NULL,
};

/* Where workers wait for work: condition variables and their like, in C, Go, Java and Python. */
static const char *const idle_frames[] = {
	"pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait", "__pthread_cond_wait",
	"__pthread_cond_timedwait", "sem_wait", "sem_timedwait", "sem_clockwait", "sigwait",
	"runtime.notesleep", "runtime.notetsleep_internal", "Unsafe_Park", NULL,
};

static bool is_among(const char *name, const char *const *names)
{
	for (; *names; names++) {
		if (strcmp(name, *names) == 0)
			return true;
	}
	return false;
}

/* The name of a frame without its version ("pthread_cond_wait@@GLIBC_2.3.2"); "" if it has none. */
static void frame_name(const struct resolver *r, uint32_t location, char *to, size_t size)
{
	const struct profile_location *at = &r->profile->locations[location - 1];
	const char *name = "";
	size_t len;

	if (at->line_count && at->lines[0].function_id)
		name = profile_text(r->profile,
				    r->profile->functions[at->lines[0].function_id - 1].name);
	len = strcspn(name, "@");
	if (len >= size)
		len = 0;
	memcpy(to, name, len);
	to[len] = 0;
}

void off_add_kernel(struct resolver *r, const struct kernel_stack *stack,
		    struct sample_frames *frames)
{
	uint32_t first = frames->count, drop = 0;
	char name[64];

	frames_add_kernel(r, stack, frames);
	for (uint32_t i = first; i < frames->count && i < first + MAX_SCHEDULER_FRAMES; i++) {
		frame_name(r, frames->locations[i], name, sizeof(name));
		if (is_among(name, scheduler_frames))
			drop = i + 1 - first;
	}
	frames->count -= drop;
	memmove(frames->locations + first, frames->locations + first + drop,
		(frames->count - first) * sizeof(frames->locations[0]));
}

/*
 * Long waits for whatever may come, or at a condition variable. A mutex that is held for long is none,
 * nor is a sleep.
 */
static bool is_idle(const struct resolver *r, uint32_t detail, const struct sample_frames *frames)
{
	char name[64];

	if (!(detail & SONDE_OFF_LONG))
		return false;
	switch (detail & SONDE_SCHED_STATE_MASK) {
	case SONDE_SCHED_POLL:
	case SONDE_SCHED_SOCKET:
	case SONDE_SCHED_OTHER:
		return true;
	case SONDE_SCHED_LOCK:
		for (uint32_t i = 0; i < frames->count; i++) {
			frame_name(r, frames->locations[i], name, sizeof(name));
			if (is_among(name, idle_frames))
				return true;
		}
		return false;
	default:
		return false;
	}
}

size_t off_labels(struct resolver *r, uint32_t detail, const struct sample_frames *frames,
		  struct profile_label *labels, size_t count)
{
	uint32_t state = detail & SONDE_SCHED_STATE_MASK;

	if (state >= SONDE_SCHED_STATE_COUNT)
		state = SONDE_SCHED_OTHER;
	count = labels_add(r, labels, count, "state", states[state].state, 0);
	count = labels_add(r, labels, count, "reason", states[state].reason, 0);
	if (is_idle(r, detail, frames))
		count = labels_add(r, labels, count, "idle", "yes", 0);
	return count;
}

/* Whether the filter leaves out what is in this cgroup; what is not known may be anybody's. */
static bool is_unwanted(const struct resolver *r, const char *path, struct container *c)
{
	char id[256] = "";

	if (path)
		container_parse(path, strlen(path), c);
	if (!cgroup_filter_is_set(&r->tasks.filter))
		return false;
	if (!path || c->id.len >= sizeof(id))
		return true;
	memcpy(id, c->id.at ? c->id.at : "", c->id.len);
	return !cgroup_filter_wants(&r->tasks.filter, c->id.len ? id : NULL,
				    c->pod_uid[0] ? c->pod_uid : NULL);
}

static size_t add_owner(struct resolver *r, const struct resolver_owner *owner,
			const struct container *c, struct profile_label *labels)
{
	char id[256] = "", unit[256] = "";
	struct buf name;
	size_t n = 0;

	buf_init(&name, NAME_BYTES);
	text_escape(&name, owner->comm, strnlen(owner->comm, SONDE_COMM_LEN));
	n = labels_add(r, labels, n, "comm",
		       name.len && buf_cstr(&name) ? buf_cstr(&name) : "[unknown process]", 0);
	buf_fini(&name);
	if (owner->tgid)
		n = labels_add(r, labels, n, "pid", NULL, owner->tgid);
	n = labels_add(r, labels, n, "cgroup",
		       owner->cgroup && *owner->cgroup ? owner->cgroup : "/", 0);
	if (c->id.len && c->id.len < sizeof(id)) {
		memcpy(id, c->id.at, c->id.len);
		n = labels_add(r, labels, n, "container_id", id, 0);
	}
	if (c->pod_uid[0])
		n = labels_add(r, labels, n, "pod_uid", c->pod_uid, 0);
	if (c->unit.len && c->unit.len < sizeof(unit)) {
		memcpy(unit, c->unit.at, c->unit.len);
		n = labels_add(r, labels, n, "systemd_unit", unit, 0);
	}
	return n;
}

void resolver_unstacked(struct resolver *r, const struct resolver_owner *owner,
			enum sonde_kind kind, uint32_t detail, const struct sonde_count *count)
{
	struct sample_frames frames = { .samples = count->samples };
	struct profile_label labels[MAX_LABELS];
	struct container c = { 0 };
	size_t n;

	if (is_unwanted(r, owner->cgroup, &c))
		return;
	frames_add_text(r, "[no stack]", &frames);
	n = add_owner(r, owner, &c, labels);
	n = off_labels(r, detail, &frames, labels, n);
	samples_add(r, &frames, kind, count, labels, n);
}
