/* SPDX-License-Identifier: Apache-2.0 */
/* Link-time stand-in until the builder is there. */
#include "symbolizer/unwind.h"

#include <errno.h>

__attribute__((weak)) int unwind_table_build(int fd, const struct unwind_options *options,
					     struct unwind_table **ret_table)
{
	return -ENOTSUP;
}

__attribute__((weak)) int unwind_table_build_vdso(struct unwind_table **ret_table)
{
	return -ENOTSUP;
}

__attribute__((weak)) void unwind_table_free(struct unwind_table *table)
{
}
