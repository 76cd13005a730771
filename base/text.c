/* SPDX-License-Identifier: Apache-2.0 */
/* Escaping of foreign bytes; see text.h. UTF-8 as in RFC 3629: no surrogates, no overlongs. */
#include "base/text.h"

#include <stdint.h>
#include <string.h>

/* Length of the valid multi-byte sequence at p, or 0. */
static size_t utf8_sequence(const uint8_t *p, size_t left)
{
	uint8_t c = p[0], low = 0x80, high = 0xbf;
	size_t len;

	if (c >= 0xc2 && c <= 0xdf)
		len = 2;
	else if (c >= 0xe0 && c <= 0xef)
		len = 3;
	else if (c >= 0xf0 && c <= 0xf4)
		len = 4;
	else
		return 0;
	if (left < len)
		return 0;
	if (c == 0xe0 || c == 0xc2) /* U+0080..U+009F are control characters */
		low = 0xa0;
	else if (c == 0xed)
		high = 0x9f;
	else if (c == 0xf0)
		low = 0x90;
	else if (c == 0xf4)
		high = 0x8f;
	if (p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	return len;
}

/* Bytes at p that may pass unchanged: 0 if this one must be escaped. */
static size_t clean_length(const uint8_t *p, size_t left)
{
	if (*p >= 0x80)
		return utf8_sequence(p, left);
	if (*p < 0x20 || *p == 0x7f)
		return 0;
	if (*p == '\\' && left >= 2 && p[1] == 'x')
		return 0;
	return 1;
}

bool text_is_clean(const char *bytes, size_t len)
{
	const uint8_t *p = (const uint8_t *)bytes;

	for (size_t i = 0; i < len;) {
		size_t n = clean_length(p + i, len - i);

		if (n == 0)
			return false;
		i += n;
	}
	return true;
}

void text_escape(struct buf *out, const char *bytes, size_t len)
{
	const uint8_t *p = (const uint8_t *)bytes;

	for (size_t i = 0; i < len;) {
		size_t n = clean_length(p + i, len - i);

		if (n) {
			buf_put(out, p + i, n);
			i += n;
		} else {
			buf_printf(out, "\\x%02x", p[i]);
			i++;
		}
	}
}
