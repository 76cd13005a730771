/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a page of unwind rows, as bpf/abi.h describes it. */
#ifndef AGENT_COLLECT_PAGE_INDEX_H
#define AGENT_COLLECT_PAGE_INDEX_H

#include <linux/types.h>

#include "bpf/abi.h"

/* Writes the index at `page` for the `count` rows behind it; the first of them is at 0. */
static inline void page_index_write(struct sonde_row *page, __u32 count)
{
	const struct sonde_row *rows = page + SONDE_INDEX_ROWS;
	__u16 *index = (__u16 *)page;
	__u32 row = 0;

	for (__u32 block = 0; block < SONDE_BLOCKS; block++) {
		while (row + 1 < count && rows[row + 1].pc_low <= block << SONDE_BLOCK_SHIFT)
			row++;
		index[block] = (__u16)row;
	}
}

#endif
