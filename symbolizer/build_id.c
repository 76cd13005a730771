/* SPDX-License-Identifier: Apache-2.0 */
/* ELF notes and content hashes; see build_id.h. */
#include "symbolizer/build_id.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "symbolizer/symbolizer.h"

enum {
	NOTES_MAX = 64 * 1024, /* bytes of one note segment that are looked at */
	NOTE_AREAS_MAX = 64,   /* note segments and sections that are looked at */
	NT_GO_BUILD_ID = 4,
	HASH_BLOCK = 4096,
	HASH_BLOCKS_MAX = 1024,
};

/* What is looked for: the note of this owner and type. */
struct note_kind {
	const char *owner;
	uint32_t owner_len; /* with the NUL */
	uint32_t type;
};

static const struct note_kind gnu_build_id = { "GNU", 4, NT_GNU_BUILD_ID };
static const struct note_kind go_build_id = { "Go", 3, NT_GO_BUILD_ID };

struct bytes {
	const uint8_t *at;
	size_t len;
};

/*
 * Walks notes. Sizes are foreign: everything is compared with what is left. The padding of
 * the last note may be missing, as GNU ld leaves it out after a one-byte build-id.
 */
static bool find_note(const uint8_t *p, size_t left, size_t align, const struct note_kind *kind,
		      struct bytes *ret_desc)
{
	Elf64_Nhdr h;

	while (left >= sizeof(h)) {
		uint64_t desc_off, next;

		memcpy(&h, p, sizeof(h));
		desc_off = (sizeof(h) + (uint64_t)h.n_namesz + align - 1) & ~(uint64_t)(align - 1);
		if (desc_off > left || h.n_descsz > left - desc_off)
			return false;
		if (h.n_type == kind->type && h.n_namesz >= kind->owner_len &&
		    memcmp(p + sizeof(h), kind->owner, kind->owner_len) == 0) {
			*ret_desc = (struct bytes){ p + desc_off, h.n_descsz };
			return true;
		}
		next = (desc_off + h.n_descsz + align - 1) & ~(uint64_t)(align - 1);
		if (next >= left)
			return false;
		p += next;
		left -= next;
	}
	return false;
}

static void to_hex(const uint8_t *bytes, size_t len, char *out)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		*out++ = digits[bytes[i] >> 4];
		*out++ = digits[bytes[i] & 15];
	}
	*out = 0;
}

static bool is_all_zero(const uint8_t *bytes, size_t len)
{
	while (len > 0 && bytes[len - 1] == 0)
		len--;
	return len == 0;
}

static bool gnu_id_in(const uint8_t *notes, size_t len, size_t align, char *ret_hex)
{
	struct bytes desc;

	if (!find_note(notes, len, align, &gnu_build_id, &desc))
		return false;
	if (desc.len > BUILD_ID_MAX || is_all_zero(desc.at, desc.len))
		return false;
	to_hex(desc.at, desc.len, ret_hex);
	return true;
}

bool build_id_in_notes(const void *notes, size_t len, char ret_hex[BUILD_ID_HEX_SIZE])
{
	return gnu_id_in(notes, len, 4, ret_hex);
}

/* FNV-1a with 128 bits: no defence against forgers, who may as well copy a real build-id. */
static void hash_add(unsigned __int128 *hash, const uint8_t *p, size_t len)
{
	const unsigned __int128 prime = ((unsigned __int128)1 << 88) + 0x13b;
	unsigned __int128 h = *hash;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * prime;
	*hash = h;
}

static unsigned __int128 hash_start(void)
{
	return ((unsigned __int128)0x6c62272e07bb0142ULL << 64) + 0x62b821756295c58dULL;
}

static void hash_to_hex(unsigned __int128 hash, char *ret_hex)
{
	uint8_t bytes[16];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(hash >> (8 * (15 - i)));
	to_hex(bytes, sizeof(bytes), ret_hex);
}

static bool go_id_in(const uint8_t *notes, size_t len, size_t align, char *ret_hex)
{
	unsigned __int128 hash = hash_start();
	struct bytes desc;

	if (!find_note(notes, len, align, &go_build_id, &desc) || desc.len == 0)
		return false;
	hash_add(&hash, desc.at, desc.len);
	hash_to_hex(hash, ret_hex);
	return true;
}

typedef bool (*notes_fn)(const uint8_t *notes, size_t len, size_t align, char *ret_hex);

/* Reads one area of notes and has `look` look into it. */
static bool look_at(const struct elf_file *elf, uint64_t off, uint64_t size, uint64_t align,
		    notes_fn look, char *ret_hex)
{
	size_t len = size < NOTES_MAX ? size : NOTES_MAX;
	uint8_t *notes;
	bool found;

	if (off >= elf->source.size || len == 0)
		return false;
	if (len > elf->source.size - off)
		len = elf->source.size - off;
	notes = malloc(len);
	if (!notes)
		return false;
	found = elf_source_read(&elf->source, off, notes, len) == 0 &&
		look(notes, len, align == 8 ? 8 : 4, ret_hex);
	free(notes);
	return found;
}

static bool look_everywhere(const struct elf_file *elf, notes_fn look, char *ret_hex)
{
	size_t areas = 0;

	for (size_t i = 0; i < elf->segment_count; i++) {
		const Elf64_Phdr *s = &elf->segments[i];

		if (s->p_type == PT_NOTE && areas++ < NOTE_AREAS_MAX &&
		    look_at(elf, s->p_offset, s->p_filesz, s->p_align, look, ret_hex))
			return true;
	}
	for (size_t i = 0; i < elf->section_count; i++) {
		const Elf64_Shdr *s = &elf->sections[i];

		if (s->sh_type == SHT_NOTE && areas++ < NOTE_AREAS_MAX &&
		    look_at(elf, s->sh_offset, s->sh_size, s->sh_addralign, look, ret_hex))
			return true;
	}
	return false;
}

bool build_id_gnu(const struct elf_file *elf, char ret_hex[BUILD_ID_HEX_SIZE])
{
	return look_everywhere(elf, gnu_id_in, ret_hex);
}

static int hash_content(const struct elf_file *elf, char *ret_hex)
{
	unsigned __int128 hash = hash_start();
	uint64_t size = elf->source.size, blocks = (size + HASH_BLOCK - 1) / HASH_BLOCK;
	uint64_t count = blocks < HASH_BLOCKS_MAX ? blocks : HASH_BLOCKS_MAX;
	uint8_t block[HASH_BLOCK];

	hash_add(&hash, (const uint8_t *)&size, sizeof(size));
	for (uint64_t i = 0; i < count; i++) {
		/* From the first to the last block, evenly spread. */
		uint64_t number =
			count == blocks
				? i
				: (uint64_t)((unsigned __int128)i * (blocks - 1) / (count - 1));
		uint64_t off = number * HASH_BLOCK;
		size_t len = size - off < HASH_BLOCK ? size - off : HASH_BLOCK;
		int err = elf_source_read(&elf->source, off, block, len);

		if (err)
			return -EIO;
		hash_add(&hash, block, len);
	}
	hash_to_hex(hash, ret_hex);
	return 0;
}

int build_id_substitute(const struct elf_file *elf, char ret_hex[BUILD_ID_HEX_SIZE])
{
	if (look_everywhere(elf, go_id_in, ret_hex))
		return 0;
	return hash_content(elf, ret_hex);
}

int sym_kernel_build_id(const char *notes_path, char *ret_hex, size_t size)
{
	char hex[BUILD_ID_HEX_SIZE] = "";
	struct buf notes;
	int err;

	if (size == 0)
		return -EINVAL;
	buf_init(&notes, NOTES_MAX);
	err = file_read_path(notes_path, &notes);
	if (!err && !build_id_in_notes(notes.data, notes.len, hex))
		hex[0] = 0;
	if (!err && strlen(hex) >= size)
		err = -ENOSPC;
	if (!err)
		memcpy(ret_hex, hex, strlen(hex) + 1);
	buf_fini(&notes);
	return err;
}
