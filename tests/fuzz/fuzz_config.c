/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: configuration files. A file is taken, or refused with one line that says why. */
#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "agent/config.h"

struct values {
	uint64_t freq, interval_ns;
	double budget;
	bool idle;
	const char *dir;
};

#define FIELD(name) offsetof(struct values, name)

static const struct option_row rows[] = {
	{ "freq", 0, OPTION_NUMBER, "HZ", "19", 1, 10000, FIELD(freq), "rate" },
	{ "interval", 0, OPTION_DURATION, "TIME", "10s", 0, 0, FIELD(interval_ns), "how often" },
	{ "budget", 0, OPTION_REAL, "PERCENT", "1", 0.01, 100, FIELD(budget), "of the node" },
	{ "idle", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(idle), "keep idle samples" },
	{ "dir", 0, OPTION_TEXT, "DIR", "/var/lib/sonde", 0, 0, FIELD(dir), "the store" },
	{ 0 },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct values v = { .freq = 19, .budget = 1, .dir = "" };
	char reason[256] = "";
	struct arena memory;
	int err;

	arena_init(&memory, 1 << 20);
	err = config_parse("f", data, size, rows, &v, &memory, reason, sizeof(reason));
	if (err) {
		assert(reason[0] && !strpbrk(reason, "\n\r\033"));
	} else {
		assert(v.freq >= 1 && v.freq <= 10000 && v.budget >= 0.01 && v.budget <= 100);
		assert(strlen(v.dir) <= size);
	}
	arena_fini(&memory);
	return 0;
}
