/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare FILE...: unwinds captured stacks by sonde's walker (with sonde's tables) and by libdw, and
 * compares them frame by frame. For each file one line, then the kinds of difference.
 * -v: both stacks of the first of each kind. -m PERCENT: exit 1 if fewer are equal.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/oracle/capture.h"
#include "tests/oracle/dwarf.h"
#include "tests/oracle/walk.h"

enum { MAX_SPACES = 4096, MAX_MAPS = 6000, MAX_KINDS = 200, SHOWN_KINDS = 12 };

static struct space {
	uint32_t tgid;
	struct walk_space *walk;
	struct dwarf_space *dwarf;
} spaces[MAX_SPACES];
static size_t space_count;

static struct kind {
	char text[400];
	long count;
} kinds[MAX_KINDS];
static size_t kind_count;

static struct {
	long stacks, equal, whole, frames, by_pointer, whole_differs;
} sum;

static char vdso_path[] = "/tmp/oracle-vdso-XXXXXX";
static int verbose;

/* ---- reading ---- */

static void vdso_write(const void *image, size_t size)
{
	int fd = mkstemp(vdso_path);

	if (fd < 0 || write(fd, image, size) != (ssize_t)size)
		err(1, "%s", vdso_path);
	close(fd);
}

/* One line of maps; the one of the vDSO is rewritten as a mapping of its image's file. */
static int parse_line(const char *line, struct walk_map *m, char *rewritten, size_t size)
{
	char perms[8] = "", path[512] = "";
	unsigned long start, end, off, ino;

	if (sscanf(line, "%lx-%lx %7s %lx %*s %lu %511[^\n]", &start, &end, perms, &off, &ino, path) < 5)
		return 0;
	*m = (struct walk_map){ .start = start, .end = end, .off = off, .is_code = perms[2] == 'x' };
	m->is_vdso = strcmp(path, "[vdso]") == 0;
	if (m->is_vdso)
		snprintf(m->path, sizeof(m->path), "%s", vdso_path);
	else if (path[0] == '/')
		snprintf(m->path, sizeof(m->path), "%s", path);
	if (m->is_vdso)
		snprintf(rewritten, size, "%lx-%lx %s 0 fe:01 1 %s\n", start, end, perms, vdso_path);
	else
		snprintf(rewritten, size, "%s\n", line);
	return start < 1UL << 56 && !strstr(path, "[vsyscall]");
}

static struct space *space_of(uint32_t tgid)
{
	for (size_t i = space_count; i > 0; i--) {
		if (spaces[i - 1].tgid == tgid)
			return &spaces[i - 1];
	}
	return NULL;
}

static void on_maps(const struct capture_maps *head, char *text)
{
	static struct walk_map maps[MAX_MAPS];
	struct space *space = space_of(head->tgid);
	char *all = calloc(1, strlen(text) + 4096), *save = NULL, line[1024];
	size_t n = 0;

	for (char *l = strtok_r(text, "\n", &save); l && n < MAX_MAPS; l = strtok_r(NULL, "\n", &save)) {
		if (parse_line(l, &maps[n], line, sizeof(line))) {
			strcat(all, line);
			n++;
		}
	}
	if (!space) {
		if (space_count == MAX_SPACES)
			errx(1, "too many processes");
		space = &spaces[space_count++];
	}
	dwarf_space_free(space->dwarf);
	*space = (struct space){ head->tgid, walk_space_new(maps, n), dwarf_space_new(all) };
	free(all);
}

/* ---- comparing ---- */

static int same_place(struct space *space, struct walk_frame ours, uint64_t addr)
{
	struct walk_frame theirs = walk_place(space->walk, addr);

	return theirs.file == ours.file && theirs.off == ours.off;
}

/*
 * The address a frame is shown at. libdw calls a signal frame's pc exact, sonde looks it up minus
 * one as the return address it also is: either will do there.
 */
static int same_frame(struct space *space, struct walk_frame ours, const struct dwarf_frame *theirs,
		      size_t i)
{
	if (!i || theirs->is_exact) {
		if (same_place(space, ours, theirs->pc))
			return 1;
	}
	return i && same_place(space, ours, theirs->pc - 1);
}

/* libdw also gives what lies in no code; there is no function for that. */
static size_t cut_no_code(struct space *space, const struct dwarf_frame *frames, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		if (!walk_place(space->walk, frames[i].pc - !frames[i].is_exact).file)
			return i;
	}
	return count;
}

static void show(struct space *space, const struct walk_result *ours, const struct dwarf_frame *theirs,
		 size_t count)
{
	char text[200];

	for (size_t i = 0; i < count || i < ours->count; i++) {
		dwarf_describe(space->dwarf, i < count ? theirs[i].pc - (i && !theirs[i].is_exact) : 0,
			       text, sizeof(text));
		printf("    %3zu", i);
		if (i < ours->count)
			printf(" %016lx:%-8lx", ours->frames[i].file, ours->frames[i].off);
		else
			printf(" %25s", i == ours->count && ours->marker ? ours->marker : "");
		if (i < count)
			printf(" %lx %s", theirs[i].pc, text);
		printf("\n");
	}
}

static void add_kind(struct space *space, const char *what, uint64_t addr,
		     const struct walk_result *ours, const struct dwarf_frame *theirs, size_t count)
{
	char place[200], text[400];
	size_t k = 0;

	dwarf_describe(space->dwarf, addr, place, sizeof(place));
	snprintf(text, sizeof(text), "%s in %.150s", what, place);
	while (k < kind_count && strcmp(kinds[k].text, text) != 0)
		k++;
	if (k == MAX_KINDS)
		return;
	if (k == kind_count) {
		kind_count++;
		strcpy(kinds[k].text, text);
		kinds[k].count = 0;
		if (verbose) {
			printf("  %s\n", text);
			show(space, ours, theirs, count);
		}
	}
	kinds[k].count++;
}

static void compare(struct space *space, const struct walk_result *ours,
		    const struct dwarf_frame *theirs, size_t count)
{
	size_t i = 0;
	uint64_t last;
	char what[120];

	while (i < count && i < ours->count && same_frame(space, ours->frames[i], &theirs[i], i))
		i++;
	sum.stacks++;
	sum.frames += (long)ours->count;
	sum.by_pointer += (long)ours->by_pointer;
	sum.whole += !ours->marker;
	last = theirs[i ? i - 1 : 0].pc - (i > 1 && !theirs[i - 1].is_exact);
	if (i == count && i == ours->count) {
		sum.equal++;
		if (!ours->marker)
			return;
		snprintf(what, sizeof(what), "equal, then %s", ours->marker);
		add_kind(space, what, last, ours, theirs, count);
		return;
	}
	if (i == ours->count)
		snprintf(what, sizeof(what), "sonde stops earlier %s", ours->marker ? ours->marker : "(end)");
	else if (i == count)
		snprintf(what, sizeof(what), "libdw stops earlier%s%s", ours->marker ? ", sonde later " : "",
			 ours->marker ? ours->marker : "");
	else
		snprintf(what, sizeof(what), "callers differ%s", i == 1 ? " (leaf's)" : "");
	sum.whole_differs += !ours->marker;
	add_kind(space, what, last, ours, theirs, count);
}

static void on_sample(const struct capture_sample *s, const void *stack)
{
	struct space *space = space_of(s->tgid);
	struct dwarf_frame theirs[DWARF_MAX_FRAMES];
	struct walk_result ours;
	size_t count;

	if (!space)
		return;
	walk_stack(space->walk, s->regs, stack, s->stack_size, &ours);
	if (!ours.count) /* in exec or exit: no code there */
		return;
	count = dwarf_stack(space->dwarf, s->regs, stack, s->stack_size, theirs);
	count = cut_no_code(space, theirs, count);
	if (count >= WALK_MAX_FRAMES - 1 && ours.count == WALK_MAX_FRAMES - 1)
		count = ours.count;
	compare(space, &ours, theirs, count);
}

static int by_count(const void *a, const void *b)
{
	const struct kind *x = a, *y = b;

	return (x->count < y->count) - (x->count > y->count);
}

static void report(const char *name)
{
	size_t tables, bytes, failed;

	walk_totals(&tables, &bytes, &failed);
	printf("%-16s %7ld %8.2f%% %8.2f%% %7.1f %6.1f%% %5zu %6zu %4zu\n", name, sum.stacks,
	       100.0 * (double)sum.equal / (double)sum.stacks,
	       100.0 * (double)sum.whole / (double)sum.stacks,
	       (double)sum.frames / (double)sum.stacks,
	       100.0 * (double)sum.by_pointer / (double)(sum.frames ? sum.frames : 1), tables,
	       bytes >> 10, failed);
	qsort(kinds, kind_count, sizeof(kinds[0]), by_count);
	for (size_t i = 0; i < kind_count && i < SHOWN_KINDS; i++)
		printf("    %6ld  %s\n", kinds[i].count, kinds[i].text);
	if (sum.whole_differs)
		printf("    of those that differ %ld look whole\n", sum.whole_differs);
}

static void read_all(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint64_t magic = 0;
	struct capture_head head;
	uint8_t *body = NULL;

	if (!f || fread(&magic, sizeof(magic), 1, f) != 1 || magic != CAPTURE_MAGIC)
		errx(1, "%s: no capture", path);
	while (fread(&head, sizeof(head), 1, f) == 1) {
		body = realloc(body, head.size + 1UL);
		if (!body || fread(body, head.size, 1, f) != 1)
			errx(1, "%s: cut short", path);
		body[head.size] = 0;
		if (head.type == CAPTURE_VDSO)
			vdso_write(body, head.size);
		else if (head.type == CAPTURE_MAPS)
			on_maps((void *)body, (char *)body + sizeof(struct capture_maps));
		else
			on_sample((void *)body, body + sizeof(struct capture_sample));
	}
	free(body);
	fclose(f);
}

int main(int argc, char **argv)
{
	double min = 0;
	int option;
	const char *name;

	while ((option = getopt(argc, argv, "vm:")) != -1) {
		if (option == 'v')
			verbose = 1;
		else if (option == 'm')
			min = atof(optarg);
		else
			return 2;
	}
	if (optind + 1 != argc)
		errx(2, "usage: compare [-v] [-m percent] FILE");
	name = strrchr(argv[optind], '/') ? strrchr(argv[optind], '/') + 1 : argv[optind];
	walk_begin();
	read_all(argv[optind]);
	unlink(vdso_path);
	report(name);
	return 100.0 * (double)sum.equal < min * (double)sum.stacks;
}
