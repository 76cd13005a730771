/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readable names by libiberty's demanglers, kept within bounds.
 *
 * Names come from files of tenants. The input is cut off at 4 KiB, libiberty's own limits on
 * depth stay on (they also refuse C++ names of over 1,024 bytes), and as soon as the output
 * passes 16 KiB we jump out of the demangler: a few dozen bytes of nested references can
 * stand for more text than fits the machine.
 */
#include "symbolizer/demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/demangle_guard.h"
#include "symbolizer/jvm_name.h"
#include "symbolizer/symbolizer.h"

enum {
	INPUT_MAX = 4096,
	OUTPUT_MAX = 16 * 1024,
	FLAGS = DMGL_PARAMS | DMGL_ANSI,
};

#define PLT_SUFFIX     "@plt"
#define PLT_SUFFIX_LEN (sizeof(PLT_SUFFIX) - 1)

struct output {
	char text[OUTPUT_MAX + 1];
	size_t len;
	bool is_over;
	bool waits_for_punctuation;
	jmp_buf give_up;
};

/*
 * Takes a piece of the output, or leaves the demangler once there is too much of it. That of
 * Rust holds memory, which a jump would leak, while it hands on an identifier in punycode. It
 * hands on punctuation apart from identifiers, and whatever multiplies output writes some.
 */
static void take_output(const char *piece, size_t len, void *output_ptr)
{
	struct output *o = output_ptr;

	if (len == 0)
		return;
	if (len <= OUTPUT_MAX - o->len && !o->is_over) {
		memcpy(o->text + o->len, piece, len);
		o->len += len;
		return;
	}
	o->is_over = true;
	if (!o->waits_for_punctuation || (ispunct((unsigned char)*piece) && *piece != '_'))
		longjmp(o->give_up, 1);
}

typedef int (*demangler_fn)(const char *mangled, int options, demangle_callbackref callback,
			    void *opaque);

static int demangle_d(const char *mangled, int options, demangle_callbackref callback, void *opaque)
{
	char *text = demangle_d_is_safe(mangled) ? dlang_demangle(mangled, options) : NULL;
	size_t len = text ? strlen(text) : 0;

	if (len > 0 && len <= OUTPUT_MAX)
		callback(text, len, opaque);
	free(text);
	return len > 0 && len <= OUTPUT_MAX;
}

static int demangle_rust(const char *mangled, int options, demangle_callbackref callback,
			 void *opaque)
{
	return demangle_rust_is_safe(mangled) &&
	       rust_demangle_callback(mangled, options, callback, opaque);
}

/* Tried in this order. Old Rust names look like C++, with a hash as the last part. */
static const struct {
	const char *prefix;
	demangler_fn demangle;
} demanglers[] = {
	{ "_ZN", demangle_rust },
	{ "_Z", cplus_demangle_v3_callback },
	{ "___Z", cplus_demangle_v3_callback }, /* blocks of clang */
	{ "_R", demangle_rust },
	{ "_D", demangle_d },
};

/* Runs one demangler; false if it refuses, or if we gave up. */
static bool run(demangler_fn demangle, const char *raw, struct output *o)
{
	o->len = 0;
	o->is_over = false;
	o->waits_for_punctuation = demangle == demangle_rust;
	if (setjmp(o->give_up))
		return false;
	return demangle(raw, FLAGS, take_output, o) && o->len > 0 && !o->is_over;
}

bool sym_demangle(const char *raw, char *out, size_t size)
{
	struct output o;

	if (raw[0] != '_' || size == 0 || strnlen(raw, INPUT_MAX + 1) > INPUT_MAX)
		return false;
	for (size_t i = 0; i < sizeof(demanglers) / sizeof(demanglers[0]); i++) {
		size_t len;

		if (strncmp(raw, demanglers[i].prefix, strlen(demanglers[i].prefix)) != 0 ||
		    !run(demanglers[i].demangle, raw, &o))
			continue;
		len = o.len < size ? o.len : size - 1;
		memcpy(out, o.text, len);
		out[len] = 0;
		return true;
	}
	return false;
}

/* Makes room for `size` bytes. */
static bool reserve(struct sym_readable *readable, size_t size)
{
	char *bigger;

	if (size <= readable->cap)
		return true;
	bigger = realloc(readable->text, size);
	if (!bigger)
		return false;
	readable->text = bigger;
	readable->cap = size;
	return true;
}

const char *sym_readable_name(struct sym_readable *readable, const char *raw, bool no_demangle)
{
	char demangled[OUTPUT_MAX + sizeof(PLT_SUFFIX)], plain[INPUT_MAX + 1];
	size_t len;
	bool is_plt;

	if (no_demangle || raw[0] != '_')
		return raw;
	len = strlen(raw);
	is_plt = len > PLT_SUFFIX_LEN && strcmp(raw + len - PLT_SUFFIX_LEN, PLT_SUFFIX) == 0;
	len -= is_plt ? PLT_SUFFIX_LEN : 0;
	if (len > INPUT_MAX)
		return raw;
	memcpy(plain, raw, len);
	plain[len] = 0;
	if (!sym_demangle(plain, demangled, OUTPUT_MAX + 1))
		return raw;
	if (is_plt)
		strcat(demangled, PLT_SUFFIX);
	len = strlen(demangled);
	if (!reserve(readable, len + 1))
		return raw;
	memcpy(readable->text, demangled, len + 1);
	return readable->text;
}

const char *sym_readable_jit_name(struct sym_readable *readable, const char *raw, bool no_demangle)
{
	char name[OUTPUT_MAX + 1];
	size_t len;

	if (no_demangle || (!jvm_name(raw, name, sizeof(name)) &&
			    !sym_demangle(raw, name, sizeof(name))))
		return raw;
	len = strlen(name);
	if (!reserve(readable, len + 1))
		return raw;
	memcpy(readable->text, name, len + 1);
	return readable->text;
}

void sym_readable_fini(struct sym_readable *readable)
{
	free(readable->text);
	*readable = (struct sym_readable){ 0 };
}
