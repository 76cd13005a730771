/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing small texts from the kernel and from users: numbers, lists of CPUs, durations.
 * All return 0 or -EINVAL (-ERANGE for values out of bounds) and leave outputs untouched
 * on failure.
 */
#ifndef BASE_PARSE_H
#define BASE_PARSE_H

#include <stddef.h>
#include <stdint.h>

/* A whole string as an unsigned number; base 0 accepts 0x. No sign, no blanks. */
int parse_u64(const char *text, int base, uint64_t *ret_value);

/*
 * A number at the head of [p, end): returns the first byte behind it, or NULL if there is
 * none or it overflows. Base 10 or 16; no prefix.
 */
const char *parse_digits(const char *p, const char *end, int base, uint64_t *ret_value);

/*
 * A kernel CPU list such as "0-3,7,9-10\n" (the format of
 * /sys/devices/system/cpu/online). Writes the CPU numbers in order; *ret_count is how many.
 * -ERANGE if there are more than `max` or a number exceeds 65535. An empty list is 0 CPUs.
 * On failure the array's content is undefined, *ret_count untouched.
 */
int parse_cpu_list(const char *text, int *ret_cpus, size_t max, size_t *ret_count);

/* "90", "90s", "1.5m", "250ms", "1h": nanoseconds, up to INT64_MAX. A bare number is seconds. */
int parse_duration(const char *text, uint64_t *ret_ns);

#endif
