/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of JIT code over time, as layers of symbols: each reading of a growing file adds one on
 * top, and the newest layer that covers an address tells what lies there now.
 *
 * An address may have changed hands while it was sampled. So a look-up says from when on the
 * samples are; all that may have been written since then is compared with what was there before,
 * and if names differ there is none. Layers that are older than any later question are merged,
 * so that a look-up meets few of them and adding takes n log n steps over all. Private to
 * symbolizer/.
 */
#ifndef SYMBOLIZER_JIT_LAYERS_H
#define SYMBOLIZER_JIT_LAYERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/sym_builder.h"
#include "symbolizer/symbolizer.h"

struct jit_layer;

struct jit_layers {
	struct jit_layer *layers; /* oldest first */
	size_t count, cap;
	size_t max_bytes;
	bool is_cut; /* old names went for the bound */
};

void jit_layers_init(struct jit_layers *l, size_t max_bytes);
void jit_layers_fini(struct jit_layers *l);

/*
 * Puts what the builder (SYM_NEWEST_WINS) holds on top and empties it, whatever comes back. A
 * symbol without a name says that nothing is there any more. `until_ns`: nothing of it was written
 * later. is_reset: it replaces all that is below. `from_ns`: no later question is about samples
 * before. 0 or -ENOMEM.
 */
int jit_layers_add(struct jit_layers *l, struct sym_builder *b, uint64_t until_ns, bool is_reset,
		   uint64_t from_ns);

/* True if a question about samples from from_ns on may be answered otherwise than a later one. */
bool jit_layers_are_moving(const struct jit_layers *l, uint64_t from_ns);

/* SYM_OK, SYM_NOT_COVERED or SYM_JIT_CHANGED. The name lives until the next jit_layers_add. */
enum sym_reason jit_layers_find(const struct jit_layers *l, uint64_t addr, uint64_t from_ns,
				struct sym_found *ret_found);

size_t jit_layers_bytes(const struct jit_layers *l);

#endif
