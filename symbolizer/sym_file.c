/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One ELF file: identity, segments, function symbols; see symbolizer.h.
 * Where names come from is in sym_sources.c.
 */
#include "symbolizer/sym_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/build_id.h"
#include "symbolizer/demangle.h"
#include "symbolizer/elf_file.h"
#include "symbolizer/go_lines.h"
#include "symbolizer/sym_builder.h"
#include "symbolizer/sym_sources.h"
#include "symbolizer/sym_table.h"

#define DEFAULT_MAX_BYTES ((size_t)64 * 1024 * 1024)

/* A PT_LOAD, as much as the mapping of offsets needs. */
struct load {
	uint64_t off;
	uint64_t size; /* in the file */
	uint64_t vaddr;
	bool is_code;
};

struct sym_file {
	struct sym_table symbols;
	struct load *loads;
	size_t load_count;
	struct sym_readable readable;
	enum sym_reason without_symbols; /* the reason if the table is empty */
	bool no_demangle;
	bool has_gnu_build_id;
	bool is_cut; /* a source was over the bound */
	char build_id[BUILD_ID_HEX_SIZE];
	struct go_lines *lines; /* of a Go program; NULL: none */
	char *start_name;       /* of the nameless function found last */
	size_t start_prefix;
};

static int copy_loads(const struct elf_file *elf, struct sym_file *file)
{
	size_t count = 0;

	for (size_t i = 0; i < elf->segment_count; i++)
		count += elf->segments[i].p_type == PT_LOAD;
	file->loads = calloc(count ? count : 1, sizeof(*file->loads));
	if (!file->loads)
		return -ENOMEM;
	for (size_t i = 0; i < elf->segment_count; i++) {
		const Elf64_Phdr *s = &elf->segments[i];

		if (s->p_type != PT_LOAD)
			continue;
		file->loads[file->load_count++] = (struct load){
			.off = s->p_offset,
			.size = s->p_filesz,
			.vaddr = s->p_vaddr,
			.is_code = s->p_flags & PF_X,
		};
	}
	return 0;
}

static int load_symbols(const struct elf_file *elf, const struct sym_file_options *options,
			struct sym_file *file)
{
	struct sym_builder b;
	int err;

	sym_builder_init(&b, SYM_INNERMOST_WINS,
			 options->max_bytes ? options->max_bytes : DEFAULT_MAX_BYTES);
	err = sym_wanted_add(&b.wanted, options->wanted, options->wanted_count);
	if (!err)
		err = sym_sources_add(elf, file->has_gnu_build_id ? file->build_id : "", options,
				      &b, &file->is_cut, &file->without_symbols);
	if (!err)
		err = sym_builder_finish(&b, false, &file->symbols);
	sym_builder_fini(&b);
	return err;
}

/* What the names of nameless functions begin with: "module!sub_", or "sub_" without a path. */
static int note_module(const char *path, struct sym_file *file)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	const char *module = slash ? slash + 1 : path ? path : "";
	size_t size = strlen(module) + sizeof("!sub_") + 16;

	file->start_name = malloc(size);
	if (!file->start_name)
		return -ENOMEM;
	file->start_prefix =
		(size_t)snprintf(file->start_name, size, "%s%ssub_", module, module[0] ? "!" : "");
	return 0;
}

static int load(const struct elf_source *source, const struct sym_file_options *options,
		struct sym_file **ret_file)
{
	static const struct sym_file_options defaults;
	struct sym_file *file = NULL;
	struct elf_file elf = { 0 };
	int err;

	options = options ? options : &defaults;
	err = elf_file_open(source, &elf);
	if (err)
		goto out;
	err = -ENOMEM;
	file = calloc(1, sizeof(*file));
	if (!file)
		goto out;
	file->no_demangle = options->no_demangle;
	file->without_symbols = SYM_NO_SYMBOLS;
	err = copy_loads(&elf, file);
	if (!err)
		err = note_module(options->path, file);
	if (err)
		goto out;
	file->has_gnu_build_id = build_id_gnu(&elf, file->build_id);
	if (!file->has_gnu_build_id)
		err = build_id_substitute(&elf, file->build_id);
	if (err)
		goto out;
	if (options->no_symbols)
		file->without_symbols = SYM_LEFT_OUT;
	else
		err = load_symbols(&elf, options, file);
	if (err)
		goto out;
	/* Without lines the names are as good. */
	if (options->lines && go_lines_load(&elf, &file->lines))
		file->lines = NULL;
	*ret_file = file;
	file = NULL;
out:
	sym_file_free(file);
	elf_file_close(&elf);
	return err;
}

int sym_file_load(int fd, const struct sym_file_options *options, struct sym_file **ret_file)
{
	struct elf_source source;
	int err = elf_source_fd(fd, &source);

	return err ? err : load(&source, options, ret_file);
}

int sym_file_load_image(const void *image, size_t size, const struct sym_file_options *options,
			struct sym_file **ret_file)
{
	struct elf_source source = elf_source_image(image, size);

	return load(&source, options, ret_file);
}

int sym_file_load_vdso(const struct sym_file_options *options, struct sym_file **ret_file)
{
	struct elf_source source;
	int err = elf_source_vdso(&source);

	return err ? err : load(&source, options, ret_file);
}

void sym_file_free(struct sym_file *file)
{
	if (!file)
		return;
	sym_table_fini(&file->symbols);
	sym_readable_fini(&file->readable);
	go_lines_free(file->lines);
	free(file->loads);
	free(file->start_name);
	free(file);
}

const char *sym_file_build_id(const struct sym_file *file)
{
	return file->build_id;
}

bool sym_file_has_gnu_build_id(const struct sym_file *file)
{
	return file->has_gnu_build_id;
}

size_t sym_file_bytes(const struct sym_file *file)
{
	return sizeof(*file) + file->load_count * sizeof(*file->loads) + file->readable.cap +
	       sym_table_bytes(&file->symbols) + (file->lines ? go_lines_bytes(file->lines) : 0);
}

static const struct load *find_load(const struct sym_file *file, uint64_t off, bool is_code)
{
	for (size_t i = 0; i < file->load_count; i++) {
		const struct load *l = &file->loads[i];

		if (l->is_code == is_code && off >= l->off && off - l->off < l->size)
			return l;
	}
	return NULL;
}

bool sym_file_vaddr(const struct sym_file *file, uint64_t file_off, uint64_t *ret_vaddr)
{
	const struct load *l = find_load(file, file_off, true);

	if (!l)
		l = find_load(file, file_off, false);
	if (!l)
		return false;
	*ret_vaddr = file_off - l->off + l->vaddr;
	return true;
}

uint64_t sym_file_code_start(const struct sym_file *file)
{
	for (size_t i = 0; i < file->load_count; i++) {
		if (file->loads[i].is_code)
			return file->loads[i].vaddr;
	}
	return 0;
}

/* The name that stands for a function that has none: the same in each run and on each machine. */
static enum sym_reason name_start(struct sym_file *file, uint64_t start, struct sym_hit *ret_hit)
{
	static const char digits[] = "0123456789abcdef";
	char *to = file->start_name + file->start_prefix;
	int shift = start ? 60 - __builtin_clzll(start) / 4 * 4 : 0;

	for (; shift >= 0; shift -= 4)
		*to++ = digits[start >> shift & 15];
	*to = 0;
	*ret_hit = (struct sym_hit){
		.name = file->start_name,
		.raw_name = file->start_name,
		.start = start,
	};
	return SYM_START_ONLY;
}

enum sym_reason sym_file_find(struct sym_file *file, uint64_t vaddr, struct sym_hit *ret_hit)
{
	struct sym_found found;

	if (file->symbols.count == 0)
		return file->without_symbols;
	if (!sym_table_find(&file->symbols, vaddr, &found))
		return file->is_cut ? SYM_NO_MEMORY : SYM_NOT_COVERED;
	if (!found.name)
		return name_start(file, found.start, ret_hit);
	*ret_hit = (struct sym_hit){
		.name = sym_readable_name(&file->readable, found.name, file->no_demangle),
		.raw_name = found.name,
		.start = found.start,
	};
	return SYM_OK;
}

size_t sym_file_lines(const struct sym_file *file, uint64_t vaddr, struct sym_line *ret_lines,
		      size_t max)
{
	return file->lines ? go_lines_find(file->lines, vaddr, ret_lines, max) : 0;
}
