/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files by build-id; see symbolize.h. A file of another build gives wrong names, so each that is
 * found is asked for its own build-id before it is used.
 */
#include "cli/symbolize.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/kernel_copy.h"
#include "symbolizer/root_open.h"

#define KERNEL "[kernel.kallsyms]"
#define VDSO   "[vdso]"

static const char kallsyms[] = "/proc/kallsyms", kernel_notes[] = "/sys/kernel/notes";

/*
 * Takes the file if it is the one that is wanted: SYM_OK, or why not. The path is the profile's word,
 * and links below `root` (NULL: none) are meant as they were on the other machine.
 */
static enum sym_reason try_file(const char *root, const char *path, const char *build_id,
				const struct sym_file_options *options, struct sym_file **ret_file)
{
	static const struct sym_file_options identity = { .no_symbols = true };
	int fd = root ? root_open(root, path) : file_open_regular(path), err;
	struct sym_file *file;
	bool is_wanted;

	if (fd < 0)
		return SYM_NO_FILE;
	/* Its symbols only once it is known to be the right one. */
	err = sym_file_load(fd, &identity, &file);
	is_wanted = !err && strcmp(sym_file_build_id(file), build_id) == 0;
	if (!err)
		sym_file_free(file);
	if (is_wanted)
		err = sym_file_load(fd, options, &file);
	close(fd);
	if (err)
		return err == -ENOEXEC || err == -EBADMSG ? SYM_BAD_ELF : SYM_NO_MEMORY;
	if (!is_wanted)
		return SYM_FILE_CHANGED;
	*ret_file = file;
	return SYM_OK;
}

/* Forms of where a file may be: %s is the directory, then the two parts of the build-id. */
static const char *const by_build_id[] = { "%s/.build-id/%.2s/%s.debug", "%s/.build-id/%.2s/%s",
					   "%s/usr/lib/debug/.build-id/%.2s/%s.debug" };

static enum sym_reason find_debug_file(const char *root, const char *dir, const char *build_id,
				       const struct sym_file_options *options,
				       struct sym_file **ret_file)
{
	enum sym_reason reason = SYM_NO_FILE, tried;
	char path[PATH_MAX];

	if (strlen(build_id) < 3 || strspn(build_id, "0123456789abcdef") != strlen(build_id))
		return SYM_NO_FILE;
	for (size_t i = 0; i < sizeof(by_build_id) / sizeof(by_build_id[0]); i++) {
		if (snprintf(path, sizeof(path), by_build_id[i], dir, build_id, build_id + 2) >=
		    (int)sizeof(path))
			continue;
		tried = try_file(root, path, build_id, options, ret_file);
		if (tried == SYM_OK)
			return SYM_OK;
		reason = tried == SYM_NO_FILE ? reason : tried;
	}
	return reason;
}

/* The file itself, else its debug file. */
static enum sym_reason open_file(const struct symbolize_options *options,
				 const struct symbolize_mapping *m, struct sym_file **ret_file)
{
	const char *mapped = m->path, *build_id = m->build_id;
	struct sym_file_options load = { .debug_dir = options->debug_dir,
					 .path = mapped,
					 .symfs = options->symfs,
					 .no_demangle = options->no_demangle,
					 .wanted = m->wanted,
					 .wanted_count = m->wanted_count };
	enum sym_reason reason = SYM_NO_FILE, tried = SYM_NO_FILE;

	if (mapped[0] == '/')
		reason = try_file(options->symfs, mapped, build_id, &load, ret_file);
	if (reason == SYM_OK)
		return SYM_OK;
	if (options->symfs)
		tried = find_debug_file(options->symfs, "", build_id, &load, ret_file);
	if (tried != SYM_OK && tried != SYM_BAD_ELF && options->debug_dir)
		tried = find_debug_file(NULL, options->debug_dir, build_id, &load, ret_file);
	return tried == SYM_NO_FILE ? reason : tried;
}

/* Where distributions have the kernel with its symbols: %s is the release. */
static const char *const vmlinux_places[] = { "/usr/lib/debug/boot/vmlinux-%s",
					      "/usr/lib/debug/lib/modules/%s/vmlinux",
					      "/boot/vmlinux-%s", "/lib/modules/%s/build/vmlinux" };

static enum sym_reason find_vmlinux(const struct symbolize_options *options,
				    const struct symbolize_mapping *m, struct sym_file **ret_file)
{
	const struct sym_file_options load = { .debug_dir = options->debug_dir,
					       .no_demangle = options->no_demangle };
	enum sym_reason reason = SYM_NO_FILE, tried;
	char path[PATH_MAX];

	/* The release is what some profile says. */
	if (!m->release[0] || strchr(m->release, '/'))
		return SYM_NO_FILE;
	for (size_t i = 0; i < sizeof(vmlinux_places) / sizeof(vmlinux_places[0]); i++) {
		if (snprintf(path, sizeof(path), vmlinux_places[i], m->release) >= (int)sizeof(path))
			continue;
		tried = try_file(options->symfs, path, m->build_id, &load, ret_file);
		if (tried == SYM_OK)
			return SYM_OK;
		reason = tried == SYM_NO_FILE ? reason : tried;
	}
	return reason;
}

/* The running kernel, if it is the same one and lies where the recorded one did. */
static bool is_running_kernel(const char *build_id, uint64_t kernel_text)
{
	uint64_t text;
	char hex[130];

	return sym_kernel_build_id(kernel_notes, hex, sizeof(hex)) == 0 &&
	       strcmp(hex, build_id) == 0 && sym_kernel_text(kallsyms, &text) == 0 &&
	       text == kernel_text;
}

static int load_copy(const struct symbolize_options *options, const struct symbolize_mapping *m,
		     const struct sym_kernel_options *load, struct sym_kernel **ret_kernel)
{
	int fd = kernel_copy_open(options->cache_dir, m->build_id), err;

	if (fd < 0)
		return fd;
	err = sym_kernel_load_copy(fd, m->kernel_text, load, ret_kernel);
	close(fd);
	return err;
}

/* And keeps a copy. */
static int load_running(const struct symbolize_options *options, const struct symbolize_mapping *m,
			struct sym_kernel_options load, struct sym_kernel **ret_kernel)
{
	struct buf text;
	int err;

	buf_init(&text, KERNEL_COPY_BYTES);
	load.text = m->kernel_text;
	load.copy = options->cache_dir && options->cache_dir[0] ? &text : NULL;
	err = sym_kernel_load(kallsyms, &load, ret_kernel);
	if (!err && text.len)
		kernel_copy_save(options->cache_dir, m->build_id, &text);
	buf_fini(&text);
	return err;
}

static enum sym_reason open_kernel(const struct symbolize_options *options,
				   const struct symbolize_mapping *m,
				   struct symbolize_source *source)
{
	const struct sym_kernel_options load = { .no_demangle = options->no_demangle,
						 .wanted = m->wanted,
						 .wanted_count = m->wanted_count };
	struct symbolize_mapping in_file = *m;
	enum sym_reason reason, tried;

	if (m->kernel_text == 0)
		return SYM_NO_KALLSYMS;
	if (load_copy(options, m, &load, &source->kernel) == 0 ||
	    (is_running_kernel(m->build_id, m->kernel_text) &&
	     load_running(options, m, load, &source->kernel) == 0))
		return SYM_OK;
	source->kernel = NULL;
	/* Which addresses of the file are wanted is only known once it is open. */
	in_file.wanted = NULL;
	in_file.wanted_count = 0;
	reason = open_file(options, &in_file, &source->file);
	if (reason != SYM_OK) {
		tried = find_vmlinux(options, m, &source->file);
		reason = tried == SYM_NO_FILE ? reason : tried;
	}
	if (reason == SYM_OK)
		source->slide = m->kernel_text - sym_file_code_start(source->file);
	return reason;
}

static enum sym_reason open_vdso(const struct symbolize_options *options,
				 const struct symbolize_mapping *m, struct sym_file **ret_file)
{
	struct sym_file_options load = { .no_demangle = options->no_demangle };
	struct sym_file *file;

	if (sym_file_load_vdso(&load, &file))
		return SYM_NO_FILE;
	if (strcmp(sym_file_build_id(file), m->build_id) != 0) {
		sym_file_free(file);
		return open_file(options, m, ret_file);
	}
	*ret_file = file;
	return SYM_OK;
}

bool symbolize_is_kernel(const char *path)
{
	return strcmp(path, KERNEL) == 0;
}

enum sym_reason symbolize_source_open(const struct symbolize_options *options,
				      const struct symbolize_mapping *m,
				      struct symbolize_source *ret_source)
{
	struct symbolize_source source = { 0 };
	enum sym_reason reason;

	if (!m->build_id[0])
		reason = m->path[0] == '[' ? SYM_NO_JIT_MAP : SYM_NO_FILE;
	else if (symbolize_is_kernel(m->path))
		reason = open_kernel(options, m, &source);
	else if (strcmp(m->path, VDSO) == 0)
		reason = open_vdso(options, m, &source.file);
	else
		reason = open_file(options, m, &source.file);
	*ret_source = source;
	return reason;
}

void symbolize_source_close(struct symbolize_source *source)
{
	sym_file_free(source->file);
	sym_kernel_free(source->kernel);
	*source = (struct symbolize_source){ 0 };
}

enum sym_reason symbolize_source_find(struct symbolize_source *source, uint64_t address,
				      struct sym_hit *ret_hit)
{
	enum sym_reason reason;

	if (source->file)
		return sym_file_find(source->file, address - source->slide, ret_hit);
	if (!source->kernel)
		return SYM_NO_FILE;
	reason = sym_kernel_find(source->kernel, address, ret_hit);
	/* Modules and BPF programs may be others by now. */
	if (reason == SYM_OK && strcmp(ret_hit->module, KERNEL) != 0)
		reason = SYM_NOT_COVERED;
	return reason;
}
