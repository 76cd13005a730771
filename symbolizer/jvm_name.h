/* SPDX-License-Identifier: Apache-2.0 */
/* Method names of the Java VM made readable; private to symbolizer/. */
#ifndef SYMBOLIZER_JVM_NAME_H
#define SYMBOLIZER_JVM_NAME_H

#include <stdbool.h>
#include <stddef.h>

/*
 * "Ljava/lang/String;.indexOf([BI)I", with "::" or nothing for the dot and with or without the
 * descriptor behind it, as "java.lang.String.indexOf(byte[], int)". Returns false, and leaves
 * `out` alone, if `raw` is no such name in all of its bytes, or does not fit.
 */
bool jvm_name(const char *raw, char *out, size_t size);

#endif
