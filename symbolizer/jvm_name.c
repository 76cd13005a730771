/* SPDX-License-Identifier: Apache-2.0 */
/* Java VM names; see jvm_name.h. The return type is left out, as in Java's own stack traces. */
#include "symbolizer/jvm_name.h"

#include <string.h>

enum { JVM_NAME_MAX = 4096 };

struct text {
	char *bytes;
	size_t len, size; /* one byte is kept for the NUL */
	bool is_over;
};

static void add(struct text *t, const char *bytes, size_t len)
{
	if (t->is_over || len >= t->size - t->len) {
		t->is_over = true;
		return;
	}
	memcpy(t->bytes + t->len, bytes, len);
	t->len += len;
}

/* "java/lang/String;" as java.lang.String: what is behind it, or NULL. */
static const char *take_class(const char *p, struct text *t)
{
	const char *start = p;

	for (; *p && *p != ';'; p++) {
		if (strchr("()[.:, ", *p))
			return NULL;
		add(t, *p == '/' ? "." : p, 1);
	}
	return *p && p > start ? p + 1 : NULL;
}

static const char *primitive(char letter)
{
	static const char *const names[128] = {
		['B'] = "byte", ['C'] = "char",  ['D'] = "double",  ['F'] = "float", ['I'] = "int",
		['J'] = "long", ['S'] = "short", ['Z'] = "boolean", ['V'] = "void"
	};

	return (unsigned char)letter < 128 ? names[(unsigned char)letter] : NULL;
}

/* One type of a descriptor: what is behind it, or NULL. */
static const char *take_type(const char *p, struct text *t, bool may_be_void)
{
	size_t dimensions = 0;

	while (*p == '[') {
		dimensions++;
		p++;
	}
	if (dimensions > 255)
		return NULL;
	if (*p == 'L') {
		p = take_class(p + 1, t);
	} else if (primitive(*p) && (*p != 'V' || (may_be_void && !dimensions))) {
		add(t, primitive(*p), strlen(primitive(*p)));
		p++;
	} else {
		return NULL;
	}
	while (p && dimensions--)
		add(t, "[]", 2);
	return p;
}

/* "([BI)V" as (byte[], int); true if it is all there is. */
static bool take_descriptor(const char *p, struct text *t)
{
	char ignored[1];
	struct text nowhere = { .bytes = ignored, .size = sizeof(ignored) };
	const char *start = ++p;

	add(t, "(", 1);
	while (p && *p && *p != ')') {
		if (p > start)
			add(t, ", ", 2);
		p = take_type(p, t, false);
	}
	if (!p || *p != ')')
		return false;
	add(t, ")", 1);
	p = take_type(p + 1, &nowhere, true);
	return p && !*p;
}

bool jvm_name(const char *raw, char *out, size_t size)
{
	char readable[JVM_NAME_MAX];
	struct text t = { .bytes = readable, .size = sizeof(readable) };
	const char *p = raw, *method;

	p = *p == 'L' ? take_class(p + 1, &t) : NULL;
	if (!p)
		return false;
	p += strncmp(p, "::", 2) == 0 ? 2 : *p == '.';
	add(&t, ".", 1);
	method = p;
	p += strcspn(p, "();[/.:, ");
	add(&t, method, (size_t)(p - method));
	if (p == method || (*p && (*p != '(' || !take_descriptor(p, &t))) || t.is_over ||
	    t.len >= size)
		return false;
	memcpy(out, readable, t.len);
	out[t.len] = 0;
	return true;
}
