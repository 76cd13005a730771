/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of the reasons, from the one list in symbolizer.h. */
#include "symbolizer/symbolizer.h"

const char *sym_reason_text(enum sym_reason reason)
{
	static const char *const texts[] = {
#define X(id, text) [id] = text,
		SYM_REASONS(X)
#undef X
	};

	return reason >= 0 && reason < SYM_REASON_COUNT ? texts[reason] : "unknown reason";
}
