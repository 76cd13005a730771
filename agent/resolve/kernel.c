/* SPDX-License-Identifier: Apache-2.0 */
/* Names of kernel addresses; see kernel.h. The thread and the rest share nothing but its end. */
#include "agent/resolve/kernel.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

enum { MAX_MODULES = 1024, MODULE_SIZE = 64, BUILD_ID_SIZE = 130 };

/* kallsyms is read again at most this often: each time takes 0.1 s of a CPU. */
static const nsec_t RELOAD = 120 * NSEC_PER_SEC;

struct module_id {
	char module[MODULE_SIZE];
	char build_id[BUILD_ID_SIZE];
};

/* What the thread works on; it belongs to the thread until is_done. */
struct reading {
	char path[PATH_MAX];
	struct sym_kernel_options options;
	struct sym_kernel *kernel; /* NULL: it failed */
	atomic_bool is_done;
};

struct kernel_names {
	const char *sys_root;
	bool has_no_names;
	struct sym_kernel *kernel;
	nsec_t read_at; /* since the start */
	pthread_t thread;
	bool is_reading;
	struct reading reading;
	struct module_id *modules;
	size_t module_count;
};

static void *read_all(void *reading_ptr)
{
	struct reading *r = reading_ptr;

	if (sym_kernel_load(r->path, &r->options, &r->kernel))
		r->kernel = NULL;
	atomic_store(&r->is_done, true);
	return NULL;
}

/* In a thread; if there can be none, here. */
static void start(struct kernel_names *names)
{
	names->reading.kernel = NULL;
	atomic_store(&names->reading.is_done, false);
	names->is_reading = thread_start(&names->thread, read_all, &names->reading) == 0;
	if (names->is_reading)
		return;
	read_all(&names->reading);
	sym_kernel_free(names->kernel);
	names->kernel = names->reading.kernel;
}

/* Takes over what the thread has read; waits for it. */
static void finish(struct kernel_names *names)
{
	pthread_join(names->thread, NULL);
	names->is_reading = false;
	if (!names->reading.kernel)
		return;
	sym_kernel_free(names->kernel);
	names->kernel = names->reading.kernel;
}

int kernel_names_new(const char *proc_root, const char *sys_root, bool no_demangle,
		     struct kernel_names **ret_names)
{
	struct kernel_names *names = calloc(1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	names->sys_root = sys_root;
	names->has_no_names = !proc_root;
	*ret_names = names;
	if (!proc_root)
		return 0;
	names->reading.options.no_demangle = no_demangle;
	snprintf(names->reading.path, sizeof(names->reading.path), "%s/kallsyms", proc_root);
	start(names);
	return 0;
}

void kernel_names_settle(struct kernel_names *names)
{
	if (names->is_reading)
		finish(names);
}

void kernel_names_free(struct kernel_names *names)
{
	if (!names)
		return;
	kernel_names_settle(names);
	sym_kernel_free(names->kernel);
	free(names->modules);
	free(names);
}

enum sym_reason kernel_names_find(struct kernel_names *names, uint64_t addr, nsec_t elapsed,
				  struct sym_hit *ret_hit)
{
	enum sym_reason reason = names->has_no_names ? SYM_LEFT_OUT : SYM_NO_KALLSYMS;

	if (names->is_reading && (!names->kernel || atomic_load(&names->reading.is_done)))
		finish(names);
	if (names->kernel)
		reason = sym_kernel_find(names->kernel, addr, ret_hit);
	if (reason == SYM_NOT_COVERED && !names->is_reading &&
	    elapsed - names->read_at >= RELOAD) {
		names->read_at = elapsed;
		start(names);
	}
	return reason;
}

bool kernel_names_are_coming(const struct kernel_names *names)
{
	return names->is_reading;
}

static void read_build_id(const struct kernel_names *names, struct module_id *m)
{
	char path[PATH_MAX];
	size_t len = strlen(m->module);

	if (strcmp(m->module, KERNEL_MODULE) == 0)
		snprintf(path, sizeof(path), "%s/kernel/notes", names->sys_root);
	else
		snprintf(path, sizeof(path), "%s/module/%.*s/notes/.note.gnu.build-id",
			 names->sys_root, (int)(len - 2), m->module + 1);
	if (sym_kernel_build_id(path, m->build_id, sizeof(m->build_id)))
		m->build_id[0] = 0;
}

const char *kernel_names_build_id(struct kernel_names *names, const char *module)
{
	struct module_id *bigger, *m;
	size_t len = strlen(module);

	for (size_t i = 0; i < names->module_count; i++) {
		if (strcmp(names->modules[i].module, module) == 0)
			return names->modules[i].build_id;
	}
	if (len < 3 || len >= MODULE_SIZE || strchr(module, '/') ||
	    names->module_count == MAX_MODULES)
		return "";
	bigger = reallocarray(names->modules, names->module_count + 1, sizeof(*bigger));
	if (!bigger)
		return "";
	names->modules = bigger;
	m = &bigger[names->module_count++];
	memcpy(m->module, module, len + 1);
	read_build_id(names, m);
	return m->build_id;
}
