/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that reads target files: symbols and unwind tables out of ELF, names of JIT code.
 *
 * WHY. A large binary takes 0.1 s to read, seconds on a machine that is overloaded or from a disk
 * that is slow. The loop thread has to drain the kernel's buffers meanwhile, or samples are lost.
 * So the loop thread only opens a file, while the process is there, and verifies it.
 * All that parses the file's bytes happens here.
 *
 * DESIGN. Three queues, one result list, one thread, one lock:
 *
 *     loop    reader_submit ->  [tables: 128] -> build ----------> [results: 16] -> reader_next
 *                          |         |                                  ^
 *                          |         +-> [symbols: 128] -> load --------+
 *     thread               +-> [JIT code: 128] -> refresh --------------+
 *
 * Unwind tables are built before any symbols are loaded: until a file's table is in the kernel,
 * each stack that meets the file is cut, whereas a name is wanted only when counts are resolved.
 * Within a queue it is first come, first served; a file whose table is done moves to the second
 * queue, with the same descriptor. Each wanted part gives exactly one result. After it was read
 * the file is verified again, so that a part of a file that changed meanwhile is -ESTALE.
 *
 * A process's JIT code comes as an object that belongs to the thread until its result is fetched.
 * It takes turns with tables: the process may be gone soon, and what is new in a perf map is mostly
 * little.
 *
 * BOUNDS. A full first queue refuses the job (-EAGAIN: the kernel is to ask again later), a full
 * second one answers -EAGAIN in place of symbols. A queue also holds no more than an
 * eighth of the descriptors that the process may open. The thread waits while 16 results, or
 * results of more than 16 MiB, have not been fetched: what is in flight is bounded too.
 *
 * GUARANTEES. The thread calls nothing but symbolizer/ and fstat, and shares no object with the
 * loop: a result belongs to whom fetched it. It takes no signals. It has the privileges of the
 * thread that started it; see reader_call. A read that hangs (a dead network file
 * system) hangs this thread only: jobs are then refused, and reader_free does not wait for
 * ever. One thread, since two would take the CPU from the machine that is measured, and a
 * hundred libraries are read in a second.
 */
#ifndef AGENT_RESOLVE_READER_H
#define AGENT_RESOLVE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/resolve/read_parts.h"

enum {
	READER_MAX_JOBS = 128, /* of each queue */
	READER_MAX_RESULTS = 16,
	READER_MAX_RESULT_BYTES = 16 << 20,
};

struct reader;

/* The options' strings are borrowed. No thread yet: jobs wait. */
int reader_new(const struct sym_file_options *options, struct reader **ret_reader);

/* Starts the thread: 0 or -errno. */
int reader_start(struct reader *r);

/*
 * Ends the thread once its present part is read, and frees all, jobs and results included. If
 * that takes more than two seconds the thread is left to itself, and with it what it uses.
 */
void reader_free(struct reader *r);

/* Readable while there are results. */
int reader_fd(const struct reader *r);

/* 0 and takes over job->fd and job->jit; or -EAGAIN, and nothing has happened. */
int reader_submit(struct reader *r, const struct read_job *job);

/* The next result; false if there is none now. */
bool reader_next(struct reader *r, struct read_result *ret_result);

/* Bytes of the results that wait to be fetched. */
size_t reader_bytes(struct reader *r, enum read_part part);

/* Jobs that wait or are at work, by part. */
size_t reader_jobs(struct reader *r, enum read_part part);

/* Over the CPU budget: symbols that are still wanted are given up from now on, or no more. */
void reader_set_symbols(struct reader *r, bool load);

/* Runs `fn` in the thread, between two parts, and waits for what it returns; 0 without a thread.
 * For what the kernel keeps by thread, such as capabilities. */
int reader_call(struct reader *r, int (*fn)(void));

#endif
