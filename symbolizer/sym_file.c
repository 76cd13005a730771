/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One ELF file: identity, segments, function symbols; see symbolizer.h.
 *
 * Sources of names, in this order: .symtab; if it is missing the .symtab of the debug file
 * with the same build-id; and always the dynamic symbols, which a partly stripped .symtab may
 * lack. A damaged source counts as a missing one, and is told as the reason if no name is left.
 *
 * A source over the byte bound is left out whole, and what no other source names has the reason
 * "over the memory bound", always. Taking as much of it as fits was not done: which functions
 * keep their names would depend on the order of a table, and those without would look like
 * gaps, into which a neighbour without a size reaches with its name.
 */
#include "symbolizer/sym_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolizer/build_id.h"
#include "symbolizer/demangle.h"
#include "symbolizer/elf_debug.h"
#include "symbolizer/elf_file.h"
#include "symbolizer/elf_syms.h"
#include "symbolizer/sym_builder.h"
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

/* Adds the symbols of the debug file. */
static int add_debug_symbols(const struct sym_file *file, const char *debug_dir,
			     struct sym_builder *b)
{
	struct elf_file elf;
	int fd, err;

	if (!debug_dir || !file->has_gnu_build_id)
		return -ENOENT;
	err = elf_debug_open(debug_dir, file->build_id, &elf, &fd);
	if (err)
		return err;
	err = elf_syms_of_section(&elf, SHT_SYMTAB, b);
	elf_file_close(&elf);
	close(fd);
	return err;
}

static bool is_fatal(int err)
{
	return err == -ENOMEM || err == -EIO;
}

/* Leaves out the source that was over the bound, its names too: the first one, so all there is. */
static void cut(struct sym_file *file, struct sym_builder *b)
{
	size_t max_bytes = b->max_bytes;

	sym_builder_fini(b);
	sym_builder_init(b, SYM_INNERMOST_WINS, max_bytes);
	file->is_cut = true;
}

static int add_dynamic_symbols(const struct elf_file *elf, struct sym_builder *b)
{
	int err = elf_syms_of_section(elf, SHT_DYNSYM, b);

	return err && err != -EFBIG && !is_fatal(err) ? elf_syms_of_dynamic(elf, b) : err;
}

static int collect_symbols(const struct elf_file *elf, const char *debug_dir, struct sym_file *file,
			   struct sym_builder *b)
{
	int err, own;

	own = err = elf_syms_of_section(elf, SHT_SYMTAB, b);
	if (is_fatal(err))
		return err;
	/* The debug file of one that is over the bound is no smaller. */
	if (b->count == 0 && own != -EFBIG) {
		err = add_debug_symbols(file, debug_dir, b);
		/* The other file's faults are no reason to lose this one's symbols. */
		if (err == -ENOMEM)
			return err;
	}
	if (err == -EFBIG)
		cut(file, b);
	err = add_dynamic_symbols(elf, b);
	if (is_fatal(err))
		return err;
	file->is_cut |= err == -EFBIG;
	if (own == -EBADMSG || err == -EBADMSG)
		file->without_symbols = SYM_BAD_ELF;
	if (file->is_cut)
		file->without_symbols = SYM_NO_MEMORY;
	return 0;
}

static int load_symbols(const struct elf_file *elf, const struct sym_file_options *options,
			struct sym_file *file)
{
	struct sym_builder b;
	int err;

	sym_builder_init(&b, SYM_INNERMOST_WINS,
			 options->max_bytes ? options->max_bytes : DEFAULT_MAX_BYTES);
	err = collect_symbols(elf, options->debug_dir, file, &b);
	if (!err)
		err = sym_builder_finish(&b, false, &file->symbols);
	sym_builder_fini(&b);
	return err;
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
	if (err)
		goto out;
	file->has_gnu_build_id = build_id_gnu(&elf, file->build_id);
	if (!file->has_gnu_build_id)
		err = build_id_substitute(&elf, file->build_id);
	if (err)
		goto out;
	err = load_symbols(&elf, options, file);
	if (err)
		goto out;
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
	free(file->loads);
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
	       sym_table_bytes(&file->symbols);
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

enum sym_reason sym_file_find(struct sym_file *file, uint64_t vaddr, struct sym_hit *ret_hit)
{
	struct sym_found found;

	if (file->symbols.count == 0)
		return file->without_symbols;
	if (!sym_table_find(&file->symbols, vaddr, &found))
		return file->is_cut ? SYM_NO_MEMORY : SYM_NOT_COVERED;
	*ret_hit = (struct sym_hit){
		.name = sym_readable_name(&file->readable, found.name, file->no_demangle),
		.raw_name = found.name,
		.start = found.start,
	};
	return SYM_OK;
}
