/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dynamic symbols of a file without section headers, by way of PT_DYNAMIC.
 *
 * Nothing there tells how many symbols there are: the old hash table has their number, and
 * the chains of the GNU one end at the last of them.
 */
#include <errno.h>
#include <stdlib.h>

#include "symbolizer/elf_syms.h"

enum { DYNAMIC_MAX = 4096 }; /* entries looked at */

struct dynamic {
	uint64_t symtab;
	uint64_t strtab;
	uint64_t strsz;
	uint64_t hash;
	uint64_t gnu_hash;
};

static int read_dynamic(const struct elf_file *elf, struct dynamic *ret)
{
	const Elf64_Phdr *segment = elf_segment_by_type(elf, PT_DYNAMIC);
	struct dynamic d = { 0 };
	size_t size = elf->is_32 ? sizeof(Elf32_Dyn) : sizeof(Elf64_Dyn);
	Elf64_Dyn entry;
	uint64_t count;

	if (!segment)
		return -ENOENT;
	count = segment->p_filesz / size;
	for (uint64_t i = 0; i < count && i < DYNAMIC_MAX; i++) {
		int err = elf_read_dyn(elf, segment->p_offset + i * size, &entry);

		if (err)
			return err;
		if (entry.d_tag == DT_NULL)
			break;
		if (entry.d_tag == DT_SYMTAB)
			d.symtab = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_STRTAB)
			d.strtab = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_STRSZ)
			d.strsz = entry.d_un.d_val;
		else if (entry.d_tag == DT_HASH)
			d.hash = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_GNU_HASH)
			d.gnu_hash = entry.d_un.d_ptr;
	}
	*ret = d;
	return d.symtab && d.strtab && (d.hash || d.gnu_hash) ? 0 : -ENOENT;
}

/* The number of symbols as DT_HASH tells it: {buckets, chains, ...}, a chain a symbol. */
static int count_by_hash(const struct elf_file *elf, uint64_t vaddr, uint64_t *ret_count)
{
	uint32_t header[2];
	uint64_t off;
	int err;

	if (!elf_file_offset(elf, vaddr, &off))
		return -EBADMSG;
	err = elf_source_read(&elf->source, off, header, sizeof(header));
	if (!err)
		*ret_count = header[1];
	return err;
}

struct gnu_hash {
	uint32_t bucket_count;
	uint32_t first_symbol; /* that the table covers */
	uint32_t bloom_words;  /* of 8 bytes, or 4 */
	uint32_t bloom_shift;
};

/* Follows the chain of `symbol` to its last one, which has the lowest bit set. */
static int end_of_chain(const struct elf_file *elf, uint64_t chains_off, const struct gnu_hash *h,
			uint64_t symbol, uint64_t *ret_count)
{
	uint32_t hashes[256];

	while (symbol < ELF_SYMS_MAX) {
		uint64_t off = chains_off + (symbol - h->first_symbol) * sizeof(hashes[0]);
		uint64_t left = off < elf->source.size ? elf->source.size - off : 0;
		size_t n = left < sizeof(hashes) ? left / sizeof(hashes[0]) : 256;
		int err;

		if (n == 0)
			return -EBADMSG;
		err = elf_source_read(&elf->source, off, hashes, n * sizeof(hashes[0]));
		if (err)
			return err;
		for (size_t i = 0; i < n; i++) {
			if (hashes[i] & 1) {
				*ret_count = symbol + i + 1;
				return 0;
			}
		}
		symbol += n;
	}
	return -EFBIG;
}

static int highest_bucket(const struct elf_file *elf, uint64_t off, uint32_t count,
			  uint32_t *ret_symbol)
{
	uint32_t *buckets, highest = 0;
	int err;

	if (count > ELF_SYMS_MAX || !elf_in_file(elf, off, (uint64_t)count * sizeof(*buckets)))
		return -EBADMSG;
	buckets = reallocarray(NULL, count ? count : 1, sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	err = elf_source_read(&elf->source, off, buckets, count * sizeof(*buckets));
	for (uint32_t i = 0; i < count && !err; i++)
		highest = buckets[i] > highest ? buckets[i] : highest;
	free(buckets);
	if (!err)
		*ret_symbol = highest;
	return err;
}

static int count_by_gnu_hash(const struct elf_file *elf, uint64_t vaddr, uint64_t *ret_count)
{
	uint64_t off, buckets_off;
	struct gnu_hash h;
	uint32_t highest;
	int err;

	if (!elf_file_offset(elf, vaddr, &off))
		return -EBADMSG;
	err = elf_source_read(&elf->source, off, &h, sizeof(h));
	if (err)
		return err;
	buckets_off = off + sizeof(h) + (uint64_t)h.bloom_words * (elf->is_32 ? 4 : 8);
	err = highest_bucket(elf, buckets_off, h.bucket_count, &highest);
	if (err)
		return err;
	if (highest < h.first_symbol) {
		/* No symbol is hashed, so what there is comes before the hashed ones. */
		*ret_count = h.first_symbol;
		return 0;
	}
	return end_of_chain(elf, buckets_off + (uint64_t)h.bucket_count * 4, &h, highest,
			    ret_count);
}

int elf_syms_of_dynamic(const struct elf_file *elf, struct sym_builder *b)
{
	struct elf_symtab table = { 0 };
	struct dynamic d;
	int err;

	err = read_dynamic(elf, &d);
	if (err)
		return err;
	err = d.hash ? count_by_hash(elf, d.hash, &table.count)
		     : count_by_gnu_hash(elf, d.gnu_hash, &table.count);
	if (err)
		return err;
	if (!elf_file_offset(elf, d.symtab, &table.off) ||
	    !elf_file_offset(elf, d.strtab, &table.strings.off))
		return -EBADMSG;
	table.strings.size = d.strsz;
	return elf_syms_read(elf, &table, b);
}
