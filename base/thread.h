/* SPDX-License-Identifier: Apache-2.0 */
/* Threads beside the loop. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/*
 * Starts a thread that takes no signals: one that did would end the program where the loop has
 * yet to read the signal, or before it blocks any. 0 or -errno.
 */
int thread_start(pthread_t *thread, void *(*run)(void *), void *context);

#endif
