/* SPDX-License-Identifier: Apache-2.0 */
/* Reference-counted dictionary of rules; see rule_set.h. Number 0 is always "no rule". */
#include "agent/collect/rule_set.h"

#include <errno.h>
#include <stdlib.h>

struct rule_use {
	uint32_t number;
	uint32_t users;
};

int rule_set_init(struct rule_set *s)
{
	*s = (struct rule_set){ .next = 1 };
	map_init(&s->numbers, sizeof(struct sonde_rule), sizeof(struct rule_use), SONDE_MAX_RULES);
	s->rules = calloc(SONDE_MAX_RULES, sizeof(*s->rules));
	s->unused = calloc(SONDE_MAX_RULES, sizeof(*s->unused));
	if (s->rules && s->unused)
		return 0;
	rule_set_fini(s);
	return -ENOMEM;
}

void rule_set_fini(struct rule_set *s)
{
	map_fini(&s->numbers);
	free(s->rules);
	free(s->unused);
	s->rules = NULL;
	s->unused = NULL;
}

int rule_set_take(struct rule_set *s, const struct sonde_rule *rule, uint16_t *ret_number,
		  bool *ret_new)
{
	struct rule_use *use;
	int added;

	if (rule->cfa == SONDE_CFA_NONE) {
		*ret_number = 0;
		*ret_new = false;
		return 0;
	}
	if (!map_find(&s->numbers, rule) && !s->unused_count && s->next >= SONDE_MAX_RULES)
		return -ENOSPC;
	added = map_add(&s->numbers, rule, &use);
	if (added < 0)
		return added;
	if (added) {
		use->number = s->unused_count ? s->unused[--s->unused_count] : s->next++;
		s->rules[use->number] = *rule;
	}
	use->users++;
	*ret_number = (uint16_t)use->number;
	*ret_new = added;
	return 0;
}

void rule_set_release(struct rule_set *s, uint16_t number)
{
	struct sonde_rule rule = s->rules[number];
	struct rule_use *use = number ? map_find(&s->numbers, &rule) : NULL;

	if (!use || --use->users)
		return;
	map_del(&s->numbers, &rule);
	s->unused[s->unused_count++] = number;
}
