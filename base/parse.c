/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, CPU lists, durations; see parse.h. */
#include "base/parse.h"

#include <errno.h>
#include <string.h>

enum {
	MAX_CPU_NUMBER = 65535,
	SAFE_DIGITS = 16, /* so many always fit into 64 bits, in any base up to 16 */
};

/* A digit's value + 1; 0: none. */
static const uint8_t digits[256] = {
	['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,
	['6'] = 7,  ['7'] = 8,  ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
	['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16, ['A'] = 11, ['B'] = 12,
	['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

/* 99: none. */
static unsigned int digit_of(char c)
{
	uint8_t digit = digits[(uint8_t)c];

	return digit ? digit - 1u : 99;
}

const char *parse_digits(const char *p, const char *end, int base, uint64_t *ret_value)
{
	const char *start = p, *safe = end - p > SAFE_DIGITS ? p + SAFE_DIGITS : end;
	uint64_t value = 0;
	unsigned int digit;

	for (; p < safe && (digit = digit_of(*p)) < (unsigned int)base; p++)
		value = value * (uint64_t)base + digit;
	for (; p < end && (digit = digit_of(*p)) < (unsigned int)base; p++) {
		if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit, &value))
			return NULL;
	}
	if (p == start)
		return NULL;
	*ret_value = value;
	return p;
}

/* Why parse_digits() did not take all of [p, end). */
static int digits_error(const char *p, const char *end, int base)
{
	if (p == end)
		return -EINVAL;
	while (p < end && digit_of(*p) < (unsigned int)base)
		p++;
	return p == end ? -ERANGE : -EINVAL;
}

int parse_u64(const char *text, int base, uint64_t *ret_value)
{
	const char *end = text + strlen(text);
	uint64_t value;

	if (base == 0) {
		base = 10;
		if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
			base = 16;
			text += 2;
		}
	}
	if (parse_digits(text, end, base, &value) != end)
		return digits_error(text, end, base);
	*ret_value = value;
	return 0;
}

int parse_cpu_list(const char *text, int *ret_cpus, size_t max, size_t *ret_count)
{
	const char *p = text, *end = text + strcspn(text, "\n");
	size_t count = 0;

	while (p < end) {
		uint64_t first, last;

		p = parse_digits(p, end, 10, &first);
		if (!p)
			return -EINVAL;
		last = first;
		if (p < end && *p == '-') {
			p = parse_digits(p + 1, end, 10, &last);
			if (!p)
				return -EINVAL;
		}
		if (last < first)
			return -EINVAL;
		if (last > MAX_CPU_NUMBER || last - first >= max - count)
			return -ERANGE;
		while (first <= last)
			ret_cpus[count++] = (int)first++;
		if (p == end)
			break;
		if (*p++ != ',' || p == end)
			return -EINVAL;
	}
	*ret_count = count;
	return 0;
}

/* Nanoseconds in a unit; 0 if there is no such unit. */
static uint64_t unit_ns(const char *unit)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "", 1000000000 },     { "s", 1000000000 },     { "ms", 1000000 },
		{ "us", 1000 },         { "m", 60000000000 },    { "h", 3600000000000 },
		{ "d", 86400000000000 },
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(unit, units[i].name) == 0)
			return units[i].ns;
	}
	return 0;
}

int parse_duration(const char *text, uint64_t *ret_ns)
{
	const char *end = text + strlen(text);
	const char *point = text + strspn(text, "0123456789");
	const char *suffix = point;
	uint64_t whole = 0, unit, scale = 1, fraction = 0;
	unsigned __int128 ns;

	if (*point == '.') {
		for (suffix++; *suffix >= '0' && *suffix <= '9'; suffix++) {
			if (scale == 1000000000) /* more digits say less than a nanosecond */
				continue;
			scale *= 10;
			fraction = fraction * 10 + (uint64_t)(*suffix - '0');
		}
		if (suffix == point + 1)
			return -EINVAL;
	}
	unit = unit_ns(suffix);
	if (point == text || !unit)
		return -EINVAL;
	if (!parse_digits(text, end, 10, &whole))
		return -ERANGE;
	ns = (unsigned __int128)whole * unit + (unsigned __int128)fraction * unit / scale;
	if (ns > INT64_MAX)
		return -ERANGE;
	*ret_ns = (uint64_t)ns;
	return 0;
}
