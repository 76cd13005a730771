/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one event loop of a command: file descriptors, timers and signals, each with a function that
 * is called when it is ready. Level-triggered epoll; one thread; functions must not block.
 */
#ifndef AGENT_LOOP_H
#define AGENT_LOOP_H

#include <stddef.h>

#include "base/clock.h"

struct loop;

typedef void (*loop_fn)(void *context);
typedef void (*loop_signal_fn)(void *context, int signal);

int loop_new(struct loop **ret_loop);
void loop_free(struct loop *l);

/* Calls `fn` whenever `fd` (borrowed) is readable. 0 or -errno. */
int loop_add_fd(struct loop *l, int fd, loop_fn fn, void *context);

/* As loop_add_fd, but the loop owns `fd`: it is closed by loop_remove, loop_free, or on failure. */
int loop_add_owned_fd(struct loop *l, int fd, loop_fn fn, void *context);

/* No more calls for `fd`. */
void loop_remove(struct loop *l, int fd);

/*
 * Calls `fn` after `first_ns` and then each `interval_ns` (0: once). Ticks that were missed
 * while another function ran are one call. 0 or -errno.
 */
int loop_add_timer(struct loop *l, nsec_t first_ns, nsec_t interval_ns, loop_fn fn, void *context);

/* Blocks the signals (ended by 0) and calls `fn` for each that comes. Once per loop. */
int loop_add_signals(struct loop *l, const int *signals, loop_signal_fn fn, void *context);

/* Runs until loop_stop; returns its `err`, or -errno if waiting failed. */
int loop_run(struct loop *l);
void loop_stop(struct loop *l, int err);

#endif
