/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one dictionary of unwind rules that all tables share: each distinct rule has a number and
 * counts its users, so a number is free again when its last table has gone.
 */
#ifndef AGENT_COLLECT_RULE_SET_H
#define AGENT_COLLECT_RULE_SET_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "bpf/abi.h"

struct rule_set {
	struct map numbers; /* struct sonde_rule -> struct rule_use */
	struct sonde_rule *rules; /* by number */
	uint16_t *unused;   /* stack of numbers given back */
	uint32_t unused_count;
	uint32_t next;      /* numbers from here on were never used */
};

int rule_set_init(struct rule_set *s);
void rule_set_fini(struct rule_set *s);

/* The rule's number, with one more user; *ret_new: it must be written to the kernel's map. */
int rule_set_take(struct rule_set *s, const struct sonde_rule *rule, uint16_t *ret_number,
		  bool *ret_new);

/* One user less. */
void rule_set_release(struct rule_set *s, uint16_t number);

#endif
