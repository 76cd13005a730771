/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Separate debug files; see elf_debug.h.
 *
 * The places are gdb's, so that what works there works here. A file found below the target's root
 * is the tenant's: it is checked like one on the host, and names in it can only spoil that tenant's
 * own profile.
 */
#include "symbolizer/elf_debug.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "symbolizer/build_id.h"
#include "symbolizer/root_open.h"

#define GLOBAL_DIR "/usr/lib/debug"

/* What is looked for. */
struct wanted {
	const char *build_id; /* "": none */
	uint32_t crc;
	bool has_crc;
};

static bool crc_of(const struct elf_source *source, uint32_t *ret_crc)
{
	enum { PIECE = 64 * 1024 };
	uint8_t *piece;
	uLong crc = crc32(0, NULL, 0);
	int err = 0;

	if (source->size > ELF_DEBUG_LINKED_MAX)
		return false;
	piece = malloc(PIECE);
	if (!piece)
		return false;
	for (uint64_t off = 0; off < source->size && !err; off += PIECE) {
		uint64_t left = source->size - off;
		size_t len = left < PIECE ? (size_t)left : PIECE;

		err = elf_source_read(source, off, piece, len);
		crc = crc32(crc, piece, (uInt)len);
	}
	free(piece);
	*ret_crc = (uint32_t)crc;
	return !err;
}

static bool fits(const struct elf_file *elf, const struct wanted *w)
{
	char found[BUILD_ID_HEX_SIZE];
	uint32_t crc;

	if (w->build_id[0] && build_id_gnu(elf, found))
		return strcmp(found, w->build_id) == 0;
	return w->has_crc && crc_of(&elf->source, &crc) && crc == w->crc;
}

/* Takes over fd: 0 if the file is the wanted one. */
static int check(int fd, const struct wanted *w, struct elf_file *ret_elf, int *ret_fd)
{
	struct elf_file elf = { 0 };
	struct elf_source source;
	int err;

	if (fd < 0)
		return -ENOENT;
	err = elf_source_fd(fd, &source);
	if (!err)
		err = elf_file_open(&source, &elf);
	if (!err && !fits(&elf, w))
		err = -ENOENT;
	if (err) {
		elf_file_close(&elf);
		close(fd);
		return err;
	}
	*ret_elf = elf;
	*ret_fd = fd;
	return 0;
}

/* <root>/<a><b><c>; without a root on this host as it is. */
static int try(const char *root, const char *a, const char *b, const char *c,
	       const struct wanted *w, struct elf_file *ret_elf, int *ret_fd)
{
	char path[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s%s%s", a, b, c), fd;

	if (len < 0 || (size_t)len >= sizeof(path))
		return -ENAMETOOLONG;
	fd = root ? root_open(root, path) : file_open_regular(path);
	return check(fd, w, ret_elf, ret_fd);
}

/* "/.build-id/xx/rest.debug": false if the id is too short for that. */
static bool id_path(const char *build_id, char *out, size_t size)
{
	return strlen(build_id) >= 4 &&
	       snprintf(out, size, "/.build-id/%.2s/%s.debug", build_id, build_id + 2) < (int)size;
}

int elf_debug_open(const char *debug_dir, const char *build_id, struct elf_file *ret_elf,
		   int *ret_fd)
{
	const struct wanted w = { .build_id = build_id };
	char path[BUILD_ID_HEX_SIZE + 32];

	if (!id_path(build_id, path, sizeof(path)))
		return -ENOENT;
	return try(NULL, debug_dir, path, "", &w, ret_elf, ret_fd);
}

bool elf_debug_link(const struct elf_file *elf, char ret_name[256], uint32_t *ret_crc)
{
	const Elf64_Shdr *s = elf_section_by_name(elf, ".gnu_debuglink");
	uint8_t bytes[256 + 8] = { 0 };
	size_t len, crc_at;

	if (!s || !elf_section_is_readable(elf, s) || s->sh_size < 8)
		return false;
	len = s->sh_size < sizeof(bytes) ? (size_t)s->sh_size : sizeof(bytes);
	if (elf_source_read(&elf->source, s->sh_offset, bytes, len))
		return false;
	/* The CRC is at the next multiple of four within the section, wherever that is in the file. */
	crc_at = (strnlen((char *)bytes, len) + 1 + 3) & ~(size_t)3;
	if (crc_at + 4 > len || crc_at > 256 || !bytes[0] || strchr((char *)bytes, '/') ||
	    strcmp((char *)bytes, ".") == 0 || strcmp((char *)bytes, "..") == 0)
		return false;
	memcpy(ret_crc, bytes + crc_at, 4);
	memcpy(ret_name, bytes, strlen((char *)bytes) + 1);
	return true;
}

static int find_by_id(const struct sym_file_options *o, const struct wanted *w,
		      struct elf_file *ret_elf, int *ret_fd)
{
	const char *dir = o->debug_dir ? o->debug_dir : GLOBAL_DIR;
	char path[BUILD_ID_HEX_SIZE + 32];
	int err = -ENOENT;

	if (o->symfs && o->path)
		err = try(o->symfs, o->path, "", "", w, ret_elf, ret_fd);
	if (!err || !id_path(w->build_id, path, sizeof(path)))
		return err;
	if (o->debug_dir)
		err = try(NULL, o->debug_dir, path, "", w, ret_elf, ret_fd);
	if (err && o->symfs)
		err = try(o->symfs, dir, path, "", w, ret_elf, ret_fd);
	if (err && o->root)
		err = try(o->root, GLOBAL_DIR, path, "", w, ret_elf, ret_fd);
	return err;
}

/* By the link's name, below one root. */
static int find_linked(const char *root, const char *debug_dir, const char *folder,
		       const char *name, const struct wanted *w, struct elf_file *ret_elf,
		       int *ret_fd)
{
	int err = try(root, folder, name, "", w, ret_elf, ret_fd);

	if (err)
		err = try(root, folder, ".debug/", name, w, ret_elf, ret_fd);
	return err ? try(root, debug_dir, folder, name, w, ret_elf, ret_fd) : 0;
}

static int find_by_link(const struct sym_file_options *o, const struct elf_file *elf,
			struct wanted *w, struct elf_file *ret_elf, int *ret_fd)
{
	char name[256], folder[PATH_MAX];
	const char *slash = o->path ? strrchr(o->path, '/') : NULL;
	int err = -ENOENT;

	if (!slash || (size_t)(slash - o->path) + 2 > sizeof(folder) ||
	    !elf_debug_link(elf, name, &w->crc))
		return -ENOENT;
	w->has_crc = true;
	snprintf(folder, sizeof(folder), "%.*s/", (int)(slash - o->path), o->path);
	if (o->root)
		err = find_linked(o->root, GLOBAL_DIR, folder, name, w, ret_elf, ret_fd);
	if (err && o->symfs)
		err = find_linked(o->symfs, o->debug_dir ? o->debug_dir : GLOBAL_DIR, folder, name,
				  w, ret_elf, ret_fd);
	if (err && o->debug_dir)
		err = try(NULL, o->debug_dir, folder, name, w, ret_elf, ret_fd);
	return err;
}

int elf_debug_find(const struct sym_file_options *options, const struct elf_file *elf,
		   const char *build_id, struct elf_file *ret_elf, int *ret_fd)
{
	struct wanted w = { .build_id = build_id };
	int err = find_by_id(options, &w, ret_elf, ret_fd);

	return err ? find_by_link(options, elf, &w, ret_elf, ret_fd) : 0;
}
