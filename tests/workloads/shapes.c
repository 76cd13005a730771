/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shapes SHAPE [-t seconds]: burns CPU under stacks of one odd shape; see the table at the end. Built
 * with -O2 -fomit-frame-pointer -fno-toplevel-reorder.
 */
#include "shapes.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "burn.h"

enum { STACK_BYTES = 1 << 18 };

static uint64_t end;
static const char *self;

static int go_on(void)
{
	return !burn_stop && wall_ns() < end;
}

static _Noreturn void finish(void)
{
	printf("{\"event\":\"truth\",\"pid\":%d,\"cpu_ns\":%llu}\n", (int)getpid(),
	       (unsigned long long)cpu_ns());
	fflush(stdout);
	_exit(0);
}

APART uint64_t shape_burn(uint64_t x)
{
	for (int i = 0; i < 20000; i++) {
		x = x * 0x9e3779b97f4a7c15ULL + 1;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

/* ---- U-01: the call is the last instruction of its function ---- */

_Noreturn APART void noreturn_spin(void);
_Noreturn APART void noreturn_spin(void)
{
	uint64_t x = 1;

	while (go_on())
		x = shape_burn(x);
	finish();
}

_Noreturn APART void noreturn_caller(void);
_Noreturn APART void noreturn_caller(void)
{
	noreturn_spin();
}

APART uint64_t noreturn_neighbour(uint64_t x);
APART uint64_t noreturn_neighbour(uint64_t x)
{
	volatile uint8_t room[200];

	room[x % 200] = 1;
	return shape_burn(x) + room[0];
}

static void noreturn(void)
{
	noreturn_caller();
}

/* ---- U-02: frames by table and by pointer, mixed ---- */

APART uint64_t table_inner(uint64_t x);
APART uint64_t table_inner(uint64_t x)
{
	return shape_burn(x) + 1;
}

APART uint64_t table_middle(uint64_t x);
APART uint64_t table_middle(uint64_t x)
{
	return fp_outer(table_inner, x) + 1;
}

APART uint64_t table_outer(uint64_t x);
APART uint64_t table_outer(uint64_t x)
{
	return fp_outer(table_middle, x) + 1;
}

static void mixed(void)
{
	while (go_on())
		table_outer(1);
}

/* ---- U-03: the PLT, and the dynamic linker's resolver ---- */

APART uint64_t plt_loop(uint64_t x);
APART uint64_t plt_loop(uint64_t x)
{
	for (int i = 0; i < 20000; i++)
		x = shape_tiny(x);
	return x;
}

static void plt(void)
{
	uint64_t x = 1;

	while (go_on())
		x = plt_loop(x);
}

/* A library is bound anew after each dlopen. */
APART uint64_t resolve_loop(const char *path);
APART uint64_t resolve_loop(const char *path)
{
	void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	shape_fn call;

	if (!library)
		burn_die(dlerror());
	*(void **)&call = dlsym(library, "shape_call_tiny");
	call(1);
	return (uint64_t)dlclose(library);
}

static void resolve(void)
{
	char path[512];
	const char *slash = strrchr(self, '/');

	snprintf(path, sizeof(path), "%.*sshapes_call.so", slash ? (int)(slash - self + 1) : 0, self);
	while (go_on())
		resolve_loop(path);
}

/* ---- U-05: code without unwind data ---- */

APART uint64_t asm_caller(shape_fn fn);
APART uint64_t asm_caller(shape_fn fn)
{
	return asm_framed(fn, 1) + 1;
}

APART uint64_t asm_caller_bare(shape_fn fn);
APART uint64_t asm_caller_bare(shape_fn fn)
{
	return asm_bare(fn, 1) + 1;
}

static void asm_frames(void)
{
	while (go_on())
		asm_caller(table_inner);
}

static void asm_bare_frames(void)
{
	while (go_on())
		asm_caller_bare(table_inner);
}

/* ---- U-06: ends of stacks ---- */

static void *thread_main(void *arg)
{
	while (go_on())
		table_inner(1);
	return arg;
}

static void thread(void)
{
	pthread_t id;

	if (pthread_create(&id, NULL, thread_main, NULL))
		burn_die("pthread_create");
	pthread_join(id, NULL);
}

APART int clone_main(void *arg);
APART int clone_main(void *arg)
{
	(void)arg;
	while (go_on())
		table_inner(1);
	finish();
}

static void raw_clone(void)
{
	uint8_t *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			      -1, 0);

	if (stack == MAP_FAILED ||
	    clone(clone_main, stack + STACK_BYTES, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
							   CLONE_THREAD | CLONE_SYSVSEM, NULL) < 0)
		burn_die("clone");
	for (;;)
		pause();
}

/* What it returns to is overwritten, so it must not return. */
APART void broken_frame(void);
APART void broken_frame(void)
{
	volatile uint64_t *frame = __builtin_frame_address(0);

	frame[0] = frame[1] = 0x4242424242424242ULL;
	while (go_on())
		table_inner(1);
	finish();
}

static void broken(void)
{
	broken_frame();
}

/* ---- U-10: vfork ---- */

APART void vfork_burn(uint64_t until);
APART void vfork_burn(uint64_t until)
{
	while (wall_ns() < until)
		shape_burn(1);
}

APART void exec_burn(void);
APART void exec_burn(void)
{
	while (go_on())
		shape_burn(1);
}

APART void parent_burn(void);
APART void parent_burn(void)
{
	while (go_on())
		shape_burn(1);
}

static void vfork_child(void)
{
	uint64_t left = end - wall_ns(), until = wall_ns() + left / 3;
	char seconds[32];
	pid_t pid;

	snprintf(seconds, sizeof(seconds), "%.3f", (double)left / 2e9);
	pid = vfork();
	if (pid == 0) {
		vfork_burn(until);
		execl(self, "shapes", "after_exec", "-t", seconds, (char *)NULL);
		_exit(127);
	}
	parent_burn();
	waitpid(pid, NULL, 0);
}

static const struct {
	const char *name;
	void (*run)(void);
} shapes[] = {
	{ "noreturn", noreturn }, /* shape_burn noreturn_spin noreturn_caller */
	{ "mixed", mixed },	  /* shape_burn table_inner fp_inner fp_outer table_middle fp_inner ... */
	{ "plt", plt },
	{ "resolve", resolve },
	{ "asm", asm_frames },	  /* shape_burn table_inner asm_framed asm_caller */
	{ "asm_bare", asm_bare_frames },
	{ "thread", thread },
	{ "clone", raw_clone },
	{ "broken", broken },
	{ "vfork", vfork_child },
	{ "after_exec", exec_burn },
};

int main(int argc, char **argv)
{
	self = argv[0];
	end = argc > 3 ? wall_ns() + (uint64_t)(atof(argv[3]) * 1e9) : UINT64_MAX;
	burn_catch_signals();
	burn_say_ready();
	for (size_t i = 0; argc > 1 && i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		if (strcmp(shapes[i].name, argv[1]) == 0) {
			shapes[i].run();
			finish();
		}
	}
	fprintf(stderr, "usage: shapes SHAPE [-t seconds]\n");
	return 2;
}
