/* SPDX-License-Identifier: Apache-2.0 */
/* The tables' side of collect.h: what the kernel is told of each announced file. */
#include <errno.h>

#include "agent/collect/collect_private.h"

/* The answer to an announcement, also to one at exec, before any sample has met the file. */
static int answer(struct collect *c, uint64_t file, enum sonde_file_state state)
{
	__u8 value = (__u8)state;

	return bpf_map_update_elem(bpf_map__fd(c->skel->maps.files), &file, &value, BPF_ANY);
}

int collect_add_table(struct collect *c, uint64_t file, const struct table_rows *rows)
{
	int err;

	if (!rows || !rows->row_count)
		return answer(c, file, SONDE_FILE_NO_TABLE);
	err = unwind_tables_add(&c->tables, file, rows);
	/* Announced again while its table is there: the kernel had forgotten only the answer. */
	if (err && err != -EEXIST)
		return err;
	return answer(c, file, SONDE_FILE_TABLE);
}

int collect_add_vdso_table(struct collect *c, const struct table_rows *rows)
{
	return unwind_tables_add(&c->tables, SONDE_FRAME_VDSO, rows);
}

size_t collect_drop_table(struct collect *c, uint64_t file)
{
	collect_forget(c, COLLECT_FILE, file);
	return unwind_tables_drop(&c->tables, file);
}

bool collect_next_table(const struct collect *c, size_t *cursor, uint64_t *ret_file)
{
	const uint64_t *file;

	if (!map_next(&c->tables.loaded, cursor, &file, NULL))
		return false;
	*ret_file = *file;
	return true;
}
