/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which mangled names are safe to give to libiberty. Its limits on depth do not bound the
 * time of everything, and what cannot be stopped from outside must not be started. Private.
 */
#ifndef SYMBOLIZER_DEMANGLE_GUARD_H
#define SYMBOLIZER_DEMANGLE_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a Rust v0 name has no binder of more lifetimes than programs have. */
bool demangle_rust_is_safe(const char *name);

/* Whether a D name is short and stays so when its back references are written out. */
bool demangle_d_is_safe(const char *name);

#endif
