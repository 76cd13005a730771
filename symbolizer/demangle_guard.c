/* SPDX-License-Identifier: Apache-2.0 */
/* Checks before demangling; see demangle_guard.h. */
#include "symbolizer/demangle_guard.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

enum {
	BINDER_DIGITS_MAX = 2, /* up to 62 * 62 lifetimes in one place */
	D_INPUT_MAX = 1024,
	D_OUTPUT_MAX = 8192, /* characters of the name with all back references written out */
};

/*
 * "for<'a, 'b...>" of a function or dyn type is written as FG or DG and a number in base 62.
 * libiberty counts up to it also where it prints nothing, so eight digits keep it busy for
 * years. The rare identifier that looks the same stays mangled: telling it apart takes a
 * whole parser.
 */
bool demangle_rust_is_safe(const char *name)
{
	for (const char *p = name; (p = strchr(p, 'G')); p++) {
		size_t digits = 0;

		if (p == name || (p[-1] != 'F' && p[-1] != 'D'))
			continue;
		while (isalnum((unsigned char)p[1 + digits]))
			digits++;
		if (digits > BINDER_DIGITS_MAX && p[1 + digits] == '_')
			return false;
	}
	return true;
}

/* The distance of the back reference at p ("Q" is behind us), in base 26, the last lower case. */
static bool back_reference(const char *p, size_t *ret_digits, size_t *ret_distance)
{
	size_t distance = 0, digits = 0;

	for (; isupper((unsigned char)p[digits]); digits++) {
		distance = distance * 26 + (size_t)(p[digits] - 'A');
		if (distance > D_INPUT_MAX)
			return false;
	}
	if (!islower((unsigned char)p[digits]))
		return false;
	*ret_digits = digits + 1;
	*ret_distance = distance * 26 + (size_t)(p[digits] - 'a');
	return true;
}

/*
 * A back reference stands for something that begins so many bytes before it and ends before
 * it; references within references can double the text each time, and the D demangler has no
 * limit. expanded[i] is the most that the first i bytes can become.
 */
bool demangle_d_is_safe(const char *name)
{
	uint32_t expanded[D_INPUT_MAX + 1] = { 0 };
	size_t len = strlen(name), digits, distance;

	if (len > D_INPUT_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		uint32_t grown = expanded[i] + 1;

		if (name[i] == 'Q' && back_reference(name + i + 1, &digits, &distance) &&
		    distance <= i)
			grown += expanded[i] - expanded[i - distance];
		if (grown > D_OUTPUT_MAX)
			return false;
		expanded[i + 1] = grown;
	}
	return true;
}
