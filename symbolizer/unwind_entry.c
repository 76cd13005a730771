/* SPDX-License-Identifier: Apache-2.0 */
/* CIEs and FDEs; see unwind_entry.h. */
#include "symbolizer/unwind_entry.h"

#include <errno.h>
#include <stdlib.h>

enum {
	CIE_SIZE_MAX = 64 * 1024,
	FDE_HEAD_MAX = 40,   /* two pointers and a size, however encoded */
	ENTRY_HEAD_MAX = 20, /* lengths of 4 and 8 bytes, an identifier of 8 */
	WORK_FACTOR = 16,    /* instructions run for each byte of the section, at most */
	WORK_LEAST = 1 << 20,
};

void unwind_section_init(struct unwind_section *s, const struct elf_source *source, uint64_t off,
			 uint64_t size)
{
	memset(s, 0, sizeof(*s));
	unwind_window_init(&s->entries, source, off, size);
	unwind_window_init(&s->commons, source, off, size);
	s->work = WORK_LEAST + size * WORK_FACTOR;
}

void unwind_section_fini(struct unwind_section *s)
{
	unwind_window_fini(&s->entries);
	unwind_window_fini(&s->commons);
	free(s->inflated);
	s->inflated = NULL;
}

uint64_t cfa_pointer(struct bytes *b, uint8_t encoding, uint64_t vaddr)
{
	uint64_t value;

	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		value = bytes_number(b, 8);
		break;
	case DW_EH_PE_udata2:
		value = bytes_number(b, 2);
		break;
	case DW_EH_PE_udata4:
		value = bytes_number(b, 4);
		break;
	case DW_EH_PE_sdata2:
		value = (uint64_t)bytes_signed(b, 2);
		break;
	case DW_EH_PE_sdata4:
		value = (uint64_t)bytes_signed(b, 4);
		break;
	case DW_EH_PE_uleb128:
		value = bytes_uleb(b);
		break;
	case DW_EH_PE_sleb128:
		value = (uint64_t)bytes_sleb(b);
		break;
	default:
		bytes_fail(b);
		return 0;
	}
	if ((encoding & 0xf0) == DW_EH_PE_pcrel)
		return value + vaddr;
	if ((encoding & 0xf0) != DW_EH_PE_absptr)
		bytes_fail(b);
	return value;
}

/* --- entries --------------------------------------------------------------------------------- */

/*
 * The identifier: 0 for a CIE of .eh_frame, else the distance back to the CIE; in .debug_frame all
 * ones for a CIE, else the position of the CIE. In .eh_frame it has 4 bytes also behind a
 * 64-bit length (LSB 10.6.1).
 */
static void read_identifier(const struct unwind_section *s, struct bytes *b, bool is_64,
			    uint64_t at, struct unwind_entry *entry)
{
	size_t size = is_64 && s->is_debug_frame ? 8 : 4;
	uint64_t all_ones = UINT64_MAX >> (64 - 8 * size), id = bytes_number(b, size);

	if (b->bad)
		return;
	entry->body = at + size;
	if (id == (s->is_debug_frame ? all_ones : 0)) {
		entry->kind = UNWIND_ENTRY_CIE;
		return;
	}
	if (!s->is_debug_frame && id > at)
		return;
	entry->kind = UNWIND_ENTRY_FDE;
	entry->cie = s->is_debug_frame ? id : at - id;
}

static int entry_read(struct unwind_section *s, struct unwind_window *w, uint64_t pos,
		      struct unwind_entry *ret_entry)
{
	struct unwind_entry entry = { .kind = UNWIND_ENTRY_BAD };
	uint64_t left = pos <= w->size ? w->size - pos : 0, length, at;
	size_t head = left < ENTRY_HEAD_MAX ? (size_t)left : ENTRY_HEAD_MAX;
	const uint8_t *bytes;
	struct bytes b;
	bool is_64;
	int err;

	err = unwind_window_see(w, pos, head, &bytes);
	if (err)
		return err;
	b = bytes_of(bytes, head);
	length = bytes_number(&b, 4);
	is_64 = length == UINT32_MAX;
	if (is_64)
		length = bytes_number(&b, 8);
	at = pos + (uint64_t)(b.p - bytes);
	if (b.bad || length > w->size - at)
		return -EBADMSG;
	entry.end = at + length;
	if (length == 0) {
		entry.kind = UNWIND_ENTRY_ZERO;
	} else {
		b.end = length < bytes_left(&b) ? b.p + length : b.end;
		read_identifier(s, &b, is_64, at, &entry);
	}
	*ret_entry = entry;
	return 0;
}

int unwind_entry_read(struct unwind_section *s, uint64_t pos, struct unwind_entry *ret_entry)
{
	return entry_read(s, &s->entries, pos, ret_entry);
}

/* --- CIE ------------------------------------------------------------------------------------- */

static bool skip_personality(struct bytes *b)
{
	uint8_t encoding = (uint8_t)bytes_number(b, 1);

	if (encoding == DW_EH_PE_omit)
		return true;
	/* Its value is of no interest, so it does not matter what it is relative to. */
	cfa_pointer(b, encoding & 0x0f, 0);
	return !b->bad && (encoding & 0x70) != DW_EH_PE_aligned;
}

/* What the letters behind 'z' say. An unknown one ends it: the size tells where the rest is. */
static bool read_letters(struct unwind_cie *cie, const char *letters, struct bytes *data)
{
	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->common.pointer_encoding = (uint8_t)bytes_number(data, 1);
			break;
		case 'P':
			if (!skip_personality(data))
				return false;
			break;
		case 'L':
			bytes_number(data, 1);
			break;
		case 'S':
			cie->common.is_signal = true;
			break;
		case 'B': /* of AArch64: no data */
			break;
		default:
			return true;
		}
	}
	return !data->bad;
}

/* `text` is the augmentation, `b` is behind the return address register. */
static bool read_augmentation(struct unwind_cie *cie, const char *text, struct bytes *b)
{
	struct bytes data;

	if (text[0] == '\0' || strcmp(text, "eh") == 0)
		return true;
	if (text[0] != 'z')
		return false;
	cie->has_sizes = true;
	data = bytes_take(b, bytes_uleb(b));
	return !data.bad && read_letters(cie, text + 1, &data);
}

static bool run_initial(struct unwind_cie *cie, struct bytes program, uint64_t vaddr)
{
	struct cfa_machine m;

	cfa_start(&m, &cie->common, program, vaddr, 0);
	if (cfa_run(&m) != CFA_ENDED)
		return false;
	cie->common.initial = m.state;
	return true;
}

/* `b` holds the entry from behind the identifier to its end, at the address `vaddr`. */
static bool parse_cie(struct unwind_cie *cie, struct bytes b, uint64_t vaddr)
{
	const uint8_t *begin = b.p;
	uint64_t version = bytes_number(&b, 1), reg;
	const char *text = (const char *)b.p;

	if ((version != 1 && version != 3 && version != 4) || !memchr(text, 0, bytes_left(&b)))
		return false;
	b.p += strlen(text) + 1;
	/* Of version 4: sizes of an address and of a segment selector. */
	if (version == 4 && bytes_number(&b, 2) != 8)
		return false;
	if (strcmp(text, "eh") == 0)
		bytes_number(&b, 8);
	cie->common.code_align = bytes_uleb(&b);
	cie->common.data_align = bytes_sleb(&b);
	reg = version == 1 ? bytes_number(&b, 1) : bytes_uleb(&b);
	if (b.bad || reg != DWARF_RIP || !read_augmentation(cie, text, &b))
		return false;
	return !b.bad && run_initial(cie, b, vaddr + (uint64_t)(b.p - begin));
}

static int spend(struct unwind_section *s, uint64_t work)
{
	if (work > s->work)
		return -EDQUOT;
	s->work -= work;
	return 0;
}

static int load_cie(struct unwind_section *s, uint64_t pos, struct unwind_cie *cie)
{
	struct unwind_entry entry;
	const uint8_t *bytes;
	uint64_t size;
	int err;

	*cie = (struct unwind_cie){ .is_bad = true };
	err = entry_read(s, &s->commons, pos, &entry);
	if (err == -EBADMSG || (!err && entry.kind != UNWIND_ENTRY_CIE))
		return 0;
	if (err)
		return err;
	size = entry.end - entry.body;
	if (size > CIE_SIZE_MAX)
		return 0;
	err = spend(s, size);
	if (!err)
		err = unwind_window_see(&s->commons, entry.body, (size_t)size, &bytes);
	if (err)
		return err;
	cie->is_bad = !parse_cie(cie, bytes_of(bytes, (size_t)size), s->vaddr + entry.body);
	return 0;
}

static int find_cie(struct unwind_section *s, uint64_t pos, const struct unwind_cie **ret_cie)
{
	struct unwind_cie *cie = &s->cies[(pos ^ pos >> 6) / 4 % UNWIND_CIE_CACHE];
	int err;

	if (cie->pos != pos + 1) {
		err = load_cie(s, pos, cie);
		if (err)
			return err;
		cie->pos = pos + 1;
	}
	*ret_cie = cie;
	return cie->is_bad ? -EBADMSG : 0;
}

/* --- FDE ------------------------------------------------------------------------------------- */

int unwind_fde_read(struct unwind_section *s, const struct unwind_entry *entry, bool with_program,
		    struct unwind_fde *ret_fde)
{
	uint64_t size = entry->end - entry->body, vaddr = s->vaddr + entry->body;
	struct unwind_fde fde = { 0 };
	const uint8_t *bytes;
	struct bytes b;
	uint8_t encoding;
	int err;

	err = find_cie(s, entry->cie, &fde.cie);
	if (!err && with_program)
		err = spend(s, size);
	if (!err && !with_program && size > FDE_HEAD_MAX)
		size = FDE_HEAD_MAX;
	if (!err)
		err = size > UNWIND_WINDOW_MAX
			      ? -EFBIG
			      : unwind_window_see(&s->entries, entry->body, (size_t)size, &bytes);
	if (err)
		return err;
	b = bytes_of(bytes, (size_t)size);
	encoding = fde.cie->common.pointer_encoding;
	fde.start = cfa_pointer(&b, encoding, vaddr);
	fde.size = cfa_pointer(&b, encoding & 0x0f, 0);
	if (b.bad)
		return -EBADMSG;
	if (with_program && fde.cie->has_sizes)
		bytes_take(&b, bytes_uleb(&b));
	if (b.bad)
		return -EBADMSG;
	fde.program = b;
	fde.program_vaddr = vaddr + (uint64_t)(b.p - bytes);
	*ret_fde = fde;
	return 0;
}
