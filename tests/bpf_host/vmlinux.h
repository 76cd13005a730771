/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel types for the host compiler, which knows no relocation of fields. */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wignored-attributes"
#pragma clang diagnostic ignored "-Wunknown-attributes"
#include_next <vmlinux.h>
#pragma clang diagnostic pop
