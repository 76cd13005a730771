/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for libbpf's header: a tracing program takes its typed arguments. */
#ifndef TESTS_BPF_HOST_BPF_TRACING_H
#define TESTS_BPF_HOST_BPF_TRACING_H

#define BPF_PROG(name, ...) name(__VA_ARGS__)

#endif
