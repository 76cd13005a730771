/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded ELF headers; see elf_file.h. */
#include "symbolizer/elf_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "base/file.h"
#include "symbolizer/elf_32.h"

/* The kernel refuses more than 64 KiB of program headers, which is 1170; so no PN_XNUM either. */
enum { MAX_SEGMENTS = 4096, MAX_SECTIONS = 65536 };

int elf_source_fd(int fd, struct elf_source *ret_source)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	*ret_source = (struct elf_source){ .fd = fd, .size = (uint64_t)st.st_size };
	return 0;
}

struct elf_source elf_source_image(const void *image, size_t size)
{
	return (struct elf_source){ .fd = -1, .image = image, .size = size };
}

/*
 * How much of the vDSO is sure to be mapped: what its PT_LOADs take from the file, which are
 * all at the start of it. Section headers may lie behind; they are not needed.
 */
static size_t vdso_size(const uint8_t *image)
{
	const Elf64_Ehdr *ehdr = (const Elf64_Ehdr *)image;
	const Elf64_Phdr *segments = (const Elf64_Phdr *)(image + ehdr->e_phoff);
	size_t size = sizeof(*ehdr);

	for (size_t i = 0; i < ehdr->e_phnum; i++) {
		size_t end = segments[i].p_offset + segments[i].p_filesz;

		if (segments[i].p_type == PT_LOAD && end > size)
			size = end;
	}
	return size;
}

int elf_source_vdso(struct elf_source *ret_source)
{
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);

	if (!image)
		return -ENOENT;
	*ret_source = elf_source_image(image, vdso_size(image));
	return 0;
}

int elf_source_read(const struct elf_source *source, uint64_t off, void *to, size_t len)
{
	int err;

	if (off > source->size || len > source->size - off)
		return -EBADMSG;
	if (len == 0)
		return 0;
	if (source->image) {
		memcpy(to, source->image + off, len);
		return 0;
	}
	err = file_read_at(source->fd, to, len, (off_t)off);
	return err == -ENODATA ? -EBADMSG : err ? -EIO : 0;
}

static int read_ehdr(struct elf_file *elf)
{
	Elf64_Ehdr *h = &elf->ehdr;
	unsigned char ident[EI_NIDENT];
	int err;

	/* The identification alone first: a short text file is "no ELF", not "damaged". */
	err = elf_source_read(&elf->source, 0, ident, sizeof(ident));
	if (err)
		return err == -EBADMSG ? -ENOEXEC : err;
	if (memcmp(ident, ELFMAG, SELFMAG) != 0 || ident[EI_DATA] != ELFDATA2LSB ||
	    (ident[EI_CLASS] != ELFCLASS64 && ident[EI_CLASS] != ELFCLASS32))
		return -ENOEXEC;
	elf->is_32 = ident[EI_CLASS] == ELFCLASS32;
	err = elf->is_32 ? elf_read_ehdr32(&elf->source, h)
			 : elf_source_read(&elf->source, 0, h, sizeof(*h));
	if (err)
		return err;
	if (h->e_type != ET_EXEC && h->e_type != ET_DYN)
		return -ENOEXEC;
	return 0;
}

/* Reads a table of `count` records of `size` bytes. */
static int read_table(const struct elf_file *elf, uint64_t off, size_t count, size_t size,
		      void *ret_table_ptr)
{
	void **ret_table = ret_table_ptr, *table;
	int err;

	if (!elf_in_file(elf, off, (uint64_t)count * size))
		return -EBADMSG;
	table = reallocarray(NULL, count, size);
	if (!table)
		return -ENOMEM;
	err = elf_source_read(&elf->source, off, table, count * size);
	if (err) {
		free(table);
		return err;
	}
	*ret_table = table;
	return 0;
}

static int read_segments(struct elf_file *elf)
{
	const Elf64_Ehdr *h = &elf->ehdr;
	size_t count = h->e_phnum;
	int err;

	if (count == 0)
		return 0;
	if (h->e_phentsize != (elf->is_32 ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr)) ||
	    count > MAX_SEGMENTS)
		return -EBADMSG;
	err = read_table(elf, h->e_phoff, count, h->e_phentsize, &elf->segments);
	if (!err && elf->is_32)
		err = elf_widen_phdrs(&elf->segments, count);
	if (!err)
		elf->segment_count = count;
	return err;
}

/* Section 0 holds the number of sections where that does not fit the header's 16 bits. */
static bool read_section_zero(const struct elf_file *elf, Elf64_Shdr *ret_zero)
{
	const Elf64_Ehdr *h = &elf->ehdr;

	if (h->e_shoff == 0)
		return false;
	if (elf->is_32)
		return h->e_shentsize == sizeof(Elf32_Shdr) &&
		       elf_read_shdr32(&elf->source, h->e_shoff, ret_zero) == 0;
	return h->e_shentsize == sizeof(Elf64_Shdr) &&
	       elf_source_read(&elf->source, h->e_shoff, ret_zero, sizeof(*ret_zero)) == 0;
}

static int read_sections(struct elf_file *elf)
{
	size_t count = elf->ehdr.e_shnum;
	Elf64_Shdr zero;
	int err;

	if (!read_section_zero(elf, &zero))
		return 0;
	if (count == 0)
		count = zero.sh_size < MAX_SECTIONS ? zero.sh_size : 0;
	if (count == 0)
		return 0;
	err = read_table(elf, elf->ehdr.e_shoff, count, elf->ehdr.e_shentsize, &elf->sections);
	if (!err && elf->is_32)
		err = elf_widen_shdrs(&elf->sections, count);
	if (!err)
		elf->section_count = count;
	return err == -EBADMSG ? 0 : err;
}

int elf_file_open(const struct elf_source *source, struct elf_file *ret_elf)
{
	struct elf_file elf = { .source = *source };
	int err;

	err = read_ehdr(&elf);
	if (err)
		goto out;
	err = read_segments(&elf);
	if (err)
		goto out;
	err = read_sections(&elf);
	if (err)
		goto out;
	*ret_elf = elf;
	return 0;
out:
	elf_file_close(&elf);
	return err;
}

void elf_file_close(struct elf_file *elf)
{
	free(elf->segments);
	free(elf->sections);
	elf->segments = NULL;
	elf->sections = NULL;
	elf->segment_count = 0;
	elf->section_count = 0;
}

bool elf_section_is_readable(const struct elf_file *elf, const Elf64_Shdr *section)
{
	return section->sh_type != SHT_NOBITS && section->sh_type != SHT_NULL &&
	       !(section->sh_flags & SHF_COMPRESSED) &&
	       elf_in_file(elf, section->sh_offset, section->sh_size);
}

const Elf64_Shdr *elf_section_by_type(const struct elf_file *elf, uint32_t type)
{
	for (size_t i = 0; i < elf->section_count; i++) {
		if (elf->sections[i].sh_type == type)
			return &elf->sections[i];
	}
	return NULL;
}

/* Whether the string at `off` of a section is `name`, its NUL included. */
static bool is_name(const struct elf_file *elf, const Elf64_Shdr *strings, uint64_t off,
		    const char *name)
{
	char text[64];
	size_t len = strlen(name) + 1;

	return len <= sizeof(text) && off <= strings->sh_size && len <= strings->sh_size - off &&
	       elf_source_read(&elf->source, strings->sh_offset + off, text, len) == 0 &&
	       memcmp(text, name, len) == 0;
}

/* The section with the names of sections, or NULL. */
static const Elf64_Shdr *section_names(const struct elf_file *elf)
{
	size_t strings = elf->ehdr.e_shstrndx;

	if (strings == SHN_XINDEX && elf->section_count > 0)
		strings = elf->sections[0].sh_link;
	if (strings >= elf->section_count || !elf_section_is_readable(elf, &elf->sections[strings]))
		return NULL;
	return &elf->sections[strings];
}

bool elf_section_is_named(const struct elf_file *elf, const Elf64_Shdr *section, const char *name)
{
	const Elf64_Shdr *strings = section_names(elf);

	return strings && is_name(elf, strings, section->sh_name, name);
}

const Elf64_Shdr *elf_section_by_name(const struct elf_file *elf, const char *name)
{
	const Elf64_Shdr *strings = section_names(elf);

	for (size_t i = 1; strings && i < elf->section_count; i++) {
		if (is_name(elf, strings, elf->sections[i].sh_name, name))
			return &elf->sections[i];
	}
	return NULL;
}

const Elf64_Phdr *elf_segment_by_type(const struct elf_file *elf, uint32_t type)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		if (elf->segments[i].p_type == type)
			return &elf->segments[i];
	}
	return NULL;
}

bool elf_file_offset(const struct elf_file *elf, uint64_t vaddr, uint64_t *ret_off)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const Elf64_Phdr *s = &elf->segments[i];

		/* One subtraction per test: sums could wrap in a hostile file. */
		if (s->p_type == PT_LOAD && vaddr >= s->p_vaddr &&
		    vaddr - s->p_vaddr < s->p_filesz) {
			*ret_off = vaddr - s->p_vaddr + s->p_offset;
			return true;
		}
	}
	return false;
}

const Elf64_Phdr *elf_exec_segment(const struct elf_file *elf, uint64_t vaddr)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const Elf64_Phdr *s = &elf->segments[i];

		if (s->p_type == PT_LOAD && (s->p_flags & PF_X) && vaddr >= s->p_vaddr &&
		    vaddr - s->p_vaddr < s->p_memsz)
			return s;
	}
	return NULL;
}
