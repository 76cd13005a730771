/* SPDX-License-Identifier: Apache-2.0 */
/* Where call frame information is; see unwind_source.h. */
#include "symbolizer/unwind_source.h"

#include <errno.h>
#include <stdlib.h>

#include "symbolizer/elf_inflate.h"

enum {
	SECTION_MAX = 256 * 1024 * 1024, /* ten times the largest that was seen */
	INFLATED_MAX = 64 * 1024 * 1024,
};

static int set_section(struct unwind_section *section, const struct elf_source *source,
		       uint64_t off, uint64_t size, uint64_t vaddr)
{
	if (size > SECTION_MAX)
		return -EFBIG;
	unwind_section_init(section, source, off, size);
	section->vaddr = vaddr;
	return 0;
}

static const Elf64_Phdr *load_of(const struct elf_file *elf, uint64_t vaddr)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const Elf64_Phdr *s = &elf->segments[i];

		if (s->p_type == PT_LOAD && vaddr >= s->p_vaddr &&
		    vaddr - s->p_vaddr < s->p_filesz && elf_in_file(elf, s->p_offset, s->p_filesz))
			return s;
	}
	return NULL;
}

/*
 * By .eh_frame_hdr, which begins with version 1, three encodings and the address of .eh_frame. The
 * sorted table behind is not needed. The section ends before its segment does.
 */
static int by_header(const struct elf_file *elf, struct unwind_section *ret_section)
{
	const Elf64_Phdr *hdr = elf_segment_by_type(elf, PT_GNU_EH_FRAME), *load;
	uint8_t head[4 + 16];
	struct bytes b;
	uint64_t vaddr, at;
	size_t len;
	int err;

	if (!hdr || hdr->p_filesz < 4)
		return -ENOENT;
	len = hdr->p_filesz < sizeof(head) ? (size_t)hdr->p_filesz : sizeof(head);
	err = elf_source_read(&elf->source, hdr->p_offset, head, len);
	if (err)
		return err;
	b = bytes_of(head + 4, len - 4);
	vaddr = cfa_pointer(&b, head[1], hdr->p_vaddr + 4);
	load = load_of(elf, vaddr);
	if (head[0] != 1 || head[1] == DW_EH_PE_omit || b.bad || !load)
		return -EBADMSG;
	at = vaddr - load->p_vaddr;
	err = set_section(ret_section, &elf->source, load->p_offset + at, load->p_filesz - at,
			  vaddr);
	if (!err)
		ret_section->size_unknown = true;
	return err;
}

int unwind_source_eh_frame(const struct elf_file *elf, struct unwind_section *ret_section)
{
	const Elf64_Shdr *s = elf_section_by_name(elf, ".eh_frame");

	if (!s || s->sh_type == SHT_NOBITS)
		return by_header(elf, ret_section);
	if (!elf_section_is_readable(elf, s))
		return -EBADMSG;
	return set_section(ret_section, &elf->source, s->sh_offset, s->sh_size, s->sh_addr);
}

static int inflated(const struct elf_file *elf, const Elf64_Shdr *s,
		    struct unwind_section *ret_section)
{
	struct elf_source source;
	uint8_t *bytes;
	size_t size;
	int err;

	err = elf_inflate(elf, s, INFLATED_MAX, &bytes, &size);
	if (err)
		return err;
	source = elf_source_image(bytes, size);
	unwind_section_init(ret_section, &source, 0, size);
	ret_section->inflated = bytes;
	return 0;
}

int unwind_source_debug_frame(const struct elf_file *elf, struct unwind_section *ret_section)
{
	const Elf64_Shdr *s = elf_section_by_name(elf, ".debug_frame");
	int err;

	if (!s || s->sh_type == SHT_NOBITS)
		return -ENOENT;
	if (s->sh_flags & SHF_COMPRESSED)
		err = inflated(elf, s, ret_section);
	else if (!elf_section_is_readable(elf, s))
		err = -EBADMSG;
	else
		err = set_section(ret_section, &elf->source, s->sh_offset, s->sh_size, 0);
	if (!err)
		ret_section->is_debug_frame = true;
	return err;
}
