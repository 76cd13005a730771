/* SPDX-License-Identifier: Apache-2.0 */
/* 32-bit to 64-bit records; see elf_32.h. */
#include "symbolizer/elf_32.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int elf_read_ehdr32(const struct elf_source *source, Elf64_Ehdr *ret_ehdr)
{
	Elf32_Ehdr h;
	int err = elf_source_read(source, 0, &h, sizeof(h));

	if (err)
		return err;
	*ret_ehdr = (Elf64_Ehdr){
		.e_type = h.e_type,
		.e_machine = h.e_machine,
		.e_version = h.e_version,
		.e_entry = h.e_entry,
		.e_phoff = h.e_phoff,
		.e_shoff = h.e_shoff,
		.e_flags = h.e_flags,
		.e_ehsize = h.e_ehsize,
		.e_phentsize = h.e_phentsize,
		.e_phnum = h.e_phnum,
		.e_shentsize = h.e_shentsize,
		.e_shnum = h.e_shnum,
		.e_shstrndx = h.e_shstrndx,
	};
	memcpy(ret_ehdr->e_ident, h.e_ident, EI_NIDENT);
	return 0;
}

static Elf64_Shdr wide_shdr(const Elf32_Shdr *s)
{
	return (Elf64_Shdr){
		.sh_name = s->sh_name,
		.sh_type = s->sh_type,
		.sh_flags = s->sh_flags,
		.sh_addr = s->sh_addr,
		.sh_offset = s->sh_offset,
		.sh_size = s->sh_size,
		.sh_link = s->sh_link,
		.sh_info = s->sh_info,
		.sh_addralign = s->sh_addralign,
		.sh_entsize = s->sh_entsize,
	};
}

int elf_read_shdr32(const struct elf_source *source, uint64_t off, Elf64_Shdr *ret_shdr)
{
	Elf32_Shdr s;
	int err = elf_source_read(source, off, &s, sizeof(s));

	if (!err)
		*ret_shdr = wide_shdr(&s);
	return err;
}

int elf_widen_phdrs(Elf64_Phdr **segments, size_t count)
{
	const Elf32_Phdr *narrow = (const Elf32_Phdr *)*segments;
	Elf64_Phdr *wide = reallocarray(NULL, count, sizeof(*wide));

	if (!wide)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		wide[i] = (Elf64_Phdr){
			.p_type = narrow[i].p_type,
			.p_flags = narrow[i].p_flags,
			.p_offset = narrow[i].p_offset,
			.p_vaddr = narrow[i].p_vaddr,
			.p_paddr = narrow[i].p_paddr,
			.p_filesz = narrow[i].p_filesz,
			.p_memsz = narrow[i].p_memsz,
			.p_align = narrow[i].p_align,
		};
	}
	free(*segments);
	*segments = wide;
	return 0;
}

int elf_widen_shdrs(Elf64_Shdr **sections, size_t count)
{
	const Elf32_Shdr *narrow = (const Elf32_Shdr *)*sections;
	Elf64_Shdr *wide = reallocarray(NULL, count, sizeof(*wide));

	if (!wide)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		wide[i] = wide_shdr(&narrow[i]);
	free(*sections);
	*sections = wide;
	return 0;
}

int elf_read_syms(const struct elf_file *elf, uint64_t off, size_t count, Elf64_Sym *ret_syms)
{
	/* The narrow ones are read into the upper part, which is widened from below. */
	size_t narrow_bytes = count * sizeof(Elf32_Sym);
	uint8_t *narrow = (uint8_t *)(ret_syms + count) - narrow_bytes;
	int err;

	if (!elf->is_32)
		return elf_source_read(&elf->source, off, ret_syms, count * sizeof(*ret_syms));
	err = elf_source_read(&elf->source, off, narrow, narrow_bytes);
	for (size_t i = 0; i < count && !err; i++) {
		Elf32_Sym s;

		memcpy(&s, narrow + i * sizeof(s), sizeof(s));
		ret_syms[i] = (Elf64_Sym){
			.st_name = s.st_name,
			.st_value = s.st_value,
			.st_size = s.st_size,
			.st_info = s.st_info,
			.st_other = s.st_other,
			.st_shndx = s.st_shndx,
		};
	}
	return err;
}

int elf_read_dyn(const struct elf_file *elf, uint64_t off, Elf64_Dyn *ret_dyn)
{
	Elf32_Dyn d;
	int err;

	if (!elf->is_32)
		return elf_source_read(&elf->source, off, ret_dyn, sizeof(*ret_dyn));
	err = elf_source_read(&elf->source, off, &d, sizeof(d));
	if (err)
		return err;
	ret_dyn->d_tag = d.d_tag;
	ret_dyn->d_un.d_val = d.d_un.d_val;
	return 0;
}
