/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded reader of little-endian ELF files: headers, segments, sections. Those of 32-bit
 * files are shown in their 64-bit form.
 *
 * The source is an fd, read by pread and never mapped, or an image in memory. Nothing in the
 * file is trusted: every offset is checked against the size, every count against a limit. The
 * program headers must be good; a damaged section table only counts as none, since the kernel
 * and ld.so run such a file just as well.
 */
#ifndef SYMBOLIZER_ELF_FILE_H
#define SYMBOLIZER_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_source {
	int fd;               /* used if `image` is NULL */
	const uint8_t *image; /* borrowed */
	uint64_t size;
};

struct elf_file {
	struct elf_source source;
	Elf64_Ehdr ehdr;
	Elf64_Phdr *segments;
	size_t segment_count;
	Elf64_Shdr *sections; /* NULL if there are none */
	size_t section_count;
	bool is_32;
};

/* Sources: -ENOEXEC if fd is no regular file, or -errno. */
int elf_source_fd(int fd, struct elf_source *ret_source);
struct elf_source elf_source_image(const void *image, size_t size);

/* This process's vDSO: -ENOENT if it has none. */
int elf_source_vdso(struct elf_source *ret_source);

/* `len` bytes at `off`: 0, -EBADMSG if they are not all inside the file, -ENOMEM, -EIO. */
int elf_source_read(const struct elf_source *source, uint64_t off, void *to, size_t len);

/*
 * -ENOEXEC: no ELF, not little-endian, or neither program nor shared object; -EBADMSG: damaged
 * headers; -ENOMEM; -EIO.
 */
int elf_file_open(const struct elf_source *source, struct elf_file *ret_elf);

/* Frees what elf_file_open allocated; a zeroed struct is fine. */
void elf_file_close(struct elf_file *elf);

/* Whether the section's bytes are in the file, whole and not compressed. */
bool elf_section_is_readable(const struct elf_file *elf, const Elf64_Shdr *section);

/* The first section of a type, or NULL. */
const Elf64_Shdr *elf_section_by_type(const struct elf_file *elf, uint32_t type);

/* The first section of a name, or NULL. */
const Elf64_Shdr *elf_section_by_name(const struct elf_file *elf, const char *name);

/* Whether the section has this name. */
bool elf_section_is_named(const struct elf_file *elf, const Elf64_Shdr *section, const char *name);

/* The first segment of a type, or NULL. */
const Elf64_Phdr *elf_segment_by_type(const struct elf_file *elf, uint32_t type);

/* File offset of a virtual address that a PT_LOAD maps from the file. */
bool elf_file_offset(const struct elf_file *elf, uint64_t vaddr, uint64_t *ret_off);

/* The executable PT_LOAD whose memory holds `vaddr`, or NULL. */
const Elf64_Phdr *elf_exec_segment(const struct elf_file *elf, uint64_t vaddr);

/* Tables whose records are of another size in 32-bit files. Errors as elf_source_read. */
static inline size_t elf_sym_size(const struct elf_file *elf)
{
	return elf->is_32 ? sizeof(Elf32_Sym) : sizeof(Elf64_Sym);
}

int elf_read_syms(const struct elf_file *elf, uint64_t off, size_t count, Elf64_Sym *ret_syms);
int elf_read_dyn(const struct elf_file *elf, uint64_t off, Elf64_Dyn *ret_dyn);

/* Whether [off, off + len) lies in the file. */
static inline bool elf_in_file(const struct elf_file *elf, uint64_t off, uint64_t len)
{
	return off <= elf->source.size && len <= elf->source.size - off;
}

#endif
