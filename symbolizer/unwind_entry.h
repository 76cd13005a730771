/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of .eh_frame and .debug_frame: common information (CIE) and frame descriptions (FDE).
 *
 * They are read where they lie, one at a time; parsed CIEs are kept in a small cache, since
 * nearly all FDEs refer to one of a few.
 */
#ifndef SYMBOLIZER_UNWIND_ENTRY_H
#define SYMBOLIZER_UNWIND_ENTRY_H

#include "symbolizer/unwind_cfa.h"
#include "symbolizer/unwind_window.h"

enum { UNWIND_CIE_CACHE = 64 };

struct unwind_cie {
	struct cfa_common common;
	uint64_t pos; /* + 1; 0 for a free place */
	bool is_bad;
	bool has_sizes; /* 'z': FDEs carry the size of their augmentation */
};

struct unwind_section {
	struct unwind_window entries;
	struct unwind_window commons; /* of its own, so that entries are read in order */
	uint64_t vaddr;               /* of the section's first byte */
	bool is_debug_frame;
	bool size_unknown; /* no section header: the end is where a length of 0 is */
	uint64_t work;     /* bytes of instructions that may still be run */
	uint8_t *inflated; /* owned; NULL if the section is read from the file */
	struct unwind_cie cies[UNWIND_CIE_CACHE];
};

enum unwind_entry_kind { UNWIND_ENTRY_ZERO, UNWIND_ENTRY_CIE, UNWIND_ENTRY_FDE, UNWIND_ENTRY_BAD };

struct unwind_entry {
	enum unwind_entry_kind kind;
	uint64_t body; /* position behind the identifier */
	uint64_t end;  /* where the next entry begins */
	uint64_t cie;  /* of an FDE: position of its CIE */
};

struct unwind_fde {
	uint64_t start; /* virtual address */
	uint64_t size;
	const struct unwind_cie *cie;
	struct bytes program; /* good until the next entry is read */
	uint64_t program_vaddr;
};

void unwind_section_init(struct unwind_section *s, const struct elf_source *source, uint64_t off,
			 uint64_t size);
void unwind_section_fini(struct unwind_section *s);

/* The entry at `pos`: 0, or -EBADMSG if its extent makes no sense, -ENOMEM, -EIO. */
int unwind_entry_read(struct unwind_section *s, uint64_t pos, struct unwind_entry *ret_entry);

/*
 * An FDE, with its program if `with_program`: 0, -EBADMSG if it or its CIE is damaged or of
 * an unknown kind, -EFBIG if its program is too long to look at, -EDQUOT if the section's work is
 * used up, -ENOMEM, -EIO.
 */
int unwind_fde_read(struct unwind_section *s, const struct unwind_entry *entry, bool with_program,
		    struct unwind_fde *ret_fde);

#endif
