/* SPDX-License-Identifier: Apache-2.0 */
/* See dwarf.h. Only .eh_frame and .debug_frame of the files themselves are used. */
#include "tests/oracle/dwarf.h"

#include <elfutils/libdwfl.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/oracle/capture.h"

enum { TID = 100 };

struct dwarf_space {
	Dwfl *dwfl;
	const uint64_t *regs;
	const uint8_t *stack;
	size_t size;
	struct dwarf_frame *frames;
	size_t count;
};

static int no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			const char *file, const char *debuglink, GElf_Word crc, char **ret_name)
{
	return -1;
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	if (*thread_arg)
		return 0;
	*thread_arg = arg;
	return TID;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
	*thread_arg = arg;
	return true;
}

static bool memory_read(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *result, void *arg)
{
	const struct dwarf_space *space = arg;
	uint64_t start = space->regs[7];

	if (addr < start && start - addr <= RED_ZONE) {
		*result = 0;
		return true;
	}
	if (addr < start || addr - start > space->size || space->size - (addr - start) < sizeof(*result))
		return false;
	memcpy(result, space->stack + (addr - start), sizeof(*result));
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct dwarf_space *space = arg;
	Dwarf_Word regs[DWARF_REGS];

	for (int i = 0; i < DWARF_REGS; i++)
		regs[i] = space->regs[i];
	return dwfl_thread_state_registers(thread, 0, DWARF_REGS, regs);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = memory_read,
	.set_initial_registers = set_registers,
};

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_linux_proc_find_elf,
	.find_debuginfo = no_debuginfo,
};

struct dwarf_space *dwarf_space_new(char *maps)
{
	struct dwarf_space *space = calloc(1, sizeof(*space));
	FILE *f = fmemopen(maps, strlen(maps), "r");

	space->dwfl = dwfl_begin(&callbacks);
	if (!space->dwfl || dwfl_linux_proc_maps_report(space->dwfl, f) ||
	    dwfl_report_end(space->dwfl, NULL, NULL))
		errx(1, "libdwfl: %s", dwfl_errmsg(-1));
	fclose(f);
	if (!dwfl_attach_state(space->dwfl, NULL, TID, &thread_callbacks, space))
		errx(1, "dwfl_attach_state: %s", dwfl_errmsg(-1));
	return space;
}

void dwarf_space_free(struct dwarf_space *space)
{
	if (!space)
		return;
	dwfl_end(space->dwfl);
	free(space);
}

static int on_frame(Dwfl_Frame *frame, void *arg)
{
	struct dwarf_space *space = arg;
	Dwarf_Addr pc;
	bool exact;

	if (space->count == DWARF_MAX_FRAMES || !dwfl_frame_pc(frame, &pc, &exact))
		return DWARF_CB_ABORT;
	space->frames[space->count++] = (struct dwarf_frame){ pc, exact };
	return DWARF_CB_OK;
}

size_t dwarf_stack(struct dwarf_space *space, const uint64_t regs[DWARF_REGS], const void *stack,
		   size_t size, struct dwarf_frame frames[DWARF_MAX_FRAMES])
{
	space->regs = regs;
	space->stack = stack;
	space->size = size;
	space->frames = frames;
	space->count = 0;
	dwfl_getthread_frames(space->dwfl, TID, on_frame, space);
	return space->count;
}

void dwarf_describe(struct dwarf_space *space, uint64_t addr, char *to, size_t size)
{
	Dwfl_Module *module = dwfl_addrmodule(space->dwfl, addr);
	const char *path = module ? dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
				  : NULL;
	const char *name = module ? dwfl_module_addrname(module, addr) : NULL;
	const char *slash = path ? strrchr(path, '/') : NULL;

	snprintf(to, size, "%s %s", slash ? slash + 1 : path ? path : "[anon]", name ? name : "?");
}
