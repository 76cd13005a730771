/* SPDX-License-Identifier: Apache-2.0 */
/* Small facts from /proc that several layers need. */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include <stddef.h>
#include <stdint.h>

/*
 * When a process started, in USER_HZ ticks since boot: field 22 of <proc_root>/<pid>/stat. With
 * the pid it names a process for good. -ESRCH if there is none, -EBADMSG for nonsense.
 */
int proc_start_ticks(const char *proc_root, uint32_t pid, uint64_t *ret_ticks);

/* The same from the file's text: the name in brackets may hold anything, also ')'. */
int proc_stat_start_ticks(const char *text, size_t len, uint64_t *ret_ticks);

/* 0 if the id is that of a process, -ECHILD if of a further thread of one, -ESRCH if of none. */
int proc_is_process(const char *proc_root, uint32_t pid);

#endif
