/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for libbpf's header. A field is read by address arithmetic and a checked read, never
 * by following the pointer: kernel addresses of the tests (host.h) are not those of the host.
 *
 * A flavour (name___suffix) describes the same kernel object with other fields, so in the
 * tests' objects it lies HOST_FLAVOUR_OFFSET behind the plain struct.
 */
#ifndef TESTS_BPF_HOST_BPF_CORE_READ_H
#define TESTS_BPF_HOST_BPF_CORE_READ_H

#include <bpf/bpf_helpers.h>

#define HOST_FLAVOUR_OFFSET 256

/* clang-format off */
#define HOST_FLAVOUR(pointer) _Generic((pointer), \
	struct inode___sec *: HOST_FLAVOUR_OFFSET, \
	struct inode___private *: HOST_FLAVOUR_OFFSET, \
	struct inode___plain *: HOST_FLAVOUR_OFFSET, \
	struct vm_area_struct___rb *: HOST_FLAVOUR_OFFSET, \
	struct mm_struct___rb *: HOST_FLAVOUR_OFFSET, \
	struct kernfs_node___parent *: HOST_FLAVOUR_OFFSET, \
	struct kernfs_node___rcu *: HOST_FLAVOUR_OFFSET, \
	default: 0)
/* clang-format on */

#define HOST_ADDRESS(from, field) \
	((void *)((__u64)(from) + HOST_FLAVOUR(from) + \
		  __builtin_offsetof(typeof(*(from)), field)))

#define HOST_READ_1(from, a) \
	({ \
		typeof(((typeof(from))0)->a) host_value; \
		bpf_probe_read_kernel((void *)&host_value, sizeof(host_value), \
				      HOST_ADDRESS(from, a)); \
		host_value; \
	})
#define HOST_READ_2(from, a, b) HOST_READ_1(HOST_READ_1(from, a), b)
#define HOST_READ_3(from, a, b, c) HOST_READ_1(HOST_READ_2(from, a, b), c)
#define HOST_PICK(a, b, c, name, ...) name
#define BPF_CORE_READ(from, ...) \
	HOST_PICK(__VA_ARGS__, HOST_READ_3, HOST_READ_2, HOST_READ_1, )(from, __VA_ARGS__)

#define BPF_CORE_READ_INTO(to, from, a) \
	bpf_probe_read_kernel((to), sizeof(*(to)), HOST_ADDRESS(from, a))

/* What the simulated kernel has, by the text of the question; see host.c. */
bool host_has(const char *what);

#define bpf_core_field_exists(...) host_has(#__VA_ARGS__)
#define bpf_core_enum_value_exists(type, value) host_has(#value)
#define bpf_core_enum_value(type, value) (value)
#define bpf_core_type_size(type) sizeof(type)
#define bpf_core_field_offset(type, field) \
	(__builtin_offsetof(type, field) + HOST_FLAVOUR((type *)0))

#endif
