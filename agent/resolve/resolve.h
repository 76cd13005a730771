/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Second user-space stage of the data path: takes decoded events and counts, finds out what the
 * frames are (asking symbolizer/), and adds samples to a profile. Knows nothing of BPF or
 * of where profiles go.
 *
 * Everything that the kernel side delivered ends in the profile: with names if they are
 * known, else as an address with its module, or as a frame "[reason]".
 * Threads: the loop's, which makes all calls here, and one of its own that reads target files
 * (reader.h). A count whose stack meets a file that is still being read waits for it, here;
 * nobody waits for the thread.
 */
#ifndef AGENT_RESOLVE_RESOLVE_H
#define AGENT_RESOLVE_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/collect/events.h"
#include "agent/resolve/container.h"
#include "proto/profile.h"
#include "symbolizer/symbolizer.h"
#include "symbolizer/unwind.h"

struct resolver;

struct resolver_options {
	const char *proc_root;  /* usually "/proc" */
	const char *debug_dir;  /* usually "/usr/lib/debug" */
	const char *symfs;      /* a folder with copies of files, for names; NULL or "": none */
	size_t symbol_bytes;    /* budget for symbol tables */
	bool no_demangle;
	struct cgroup_filter filter; /* its texts outlive the resolver */
	bool no_symbols; /* build-ids and addresses only */
};

/* What became of the frames, weighted by the samples that hold them. */
struct resolver_totals {
	uint64_t frames[SYM_REASON_COUNT]; /* by enum sym_reason */
	uint64_t leaf_frames[SYM_REASON_COUNT]; /* the same for the innermost frame of each sample */
	uint64_t markers[SONDE_MARKER_COUNT];
	uint64_t samples;             /* added to profiles */
	uint64_t weight;
	uint64_t lost_stacks;         /* samples whose stack was not there: frame "[stack lost]" */
	uint64_t unknown_processes;   /* samples whose process record was not there */
	uint64_t unknown_cgroups;     /* the same of cgroups; a filter leaves these out */
	uint64_t filtered;            /* samples left out by the filter, of counts */
	uint64_t filtered_overflow;   /* the same of what had no room for its stack */
	uint64_t filtered_weight;
	uint64_t no_memory;           /* samples that could not be added: lost */
	uint64_t files, files_failed; /* opened; could not be opened, or changed */
	uint64_t files_put_off;       /* announced when the queues were full: announced again later */
	uint64_t carried_in, carried_out; /* samples that waited for files when a profile was closed */
	uint64_t stacks, file_bytes;  /* stack records received; bytes of symbol tables held */
	uint64_t processes;           /* process records received */
	uint64_t perf_map_bad_lines, jitdump_bad_records; /* made no sense: left out */

	/* Gauges: how full the tables are that both sides keep. */
	uint64_t stacks_known, facts_known, files_known;
	uint64_t files_queued;    /* parts of files that the reader has to do: tables and symbols */
	uint64_t samples_waiting; /* for files */
};

int resolver_new(const struct resolver_options *options, struct resolver **ret_resolver);
void resolver_free(struct resolver *r);

/* Starts the reading of files: 0 or -errno. Until then all files wait. */
int resolver_start(struct resolver *r);

/*
 * Runs `fn` in the thread that reads files: see reader_call. Waits for the one that reads
 * kallsyms first, so that none is left which `fn` did not run in.
 */
int resolver_call_in_reader(struct resolver *r, int (*fn)(void));

/* Readable when files have been read: call resolver_poll. */
int resolver_fd(const struct resolver *r);

/*
 * Takes in what was read: tables for resolver_next_table, and symbols, by which counts that wait
 * may get into the profile.
 */
void resolver_poll(struct resolver *r);

/* Files whose unwind tables are not built yet. */
size_t resolver_tables_due(const struct resolver *r);

/* Whether counts wait for files. */
bool resolver_is_waiting(const struct resolver *r);

/* Ends all waiting: what has no symbols yet has the reason SYM_READING. */
void resolver_stop_waiting(struct resolver *r);

/* Throws away the counts that wait. */
void resolver_discard_waiting(struct resolver *r);

/*
 * Samples go to `profile` from now on. Of which of its types what a kind counts is: see
 * resolver_set_columns; else they must be samples/count and the weight's.
 */
void resolver_begin(struct resolver *r, struct profile *profile);

/* Where the number and the weight of a kind of counts go in profiles that begin from now on. */
enum { RESOLVER_NOWHERE = -1 };
void resolver_set_columns(struct resolver *r, enum sonde_kind kind, int number, int weight);

/* The profile gets its last facts (mapping flags); no more samples go there. Counts that wait go
 * into the next one. */
void resolver_end(struct resolver *r);

void resolver_event(struct resolver *r, const struct event *event);
void resolver_count(struct resolver *r, const struct sonde_count_key *key,
		    const struct sonde_count *count);

/* What had no room for its stack in the kernel: weight of a cgroup. */
void resolver_overflow(struct resolver *r, const struct sonde_overflow_key *key,
		       const struct sonde_count *count);

/* Whose time a count without a stack is. */
struct resolver_owner {
	const char *comm; /* any bytes, NUL-ended, at most SONDE_COMM_LEN */
	uint32_t tgid;    /* 0: of several */
	const char *cgroup; /* clean text, or NULL */
};

/* Time off the CPU of which no stack is known. */
void resolver_unstacked(struct resolver *r, const struct resolver_owner *owner,
			enum sonde_kind kind, uint32_t detail, const struct sonde_count *count);

/* Files seen first from now on are not read (their frames have the reason SYM_NO_BUDGET), or are. */
void resolver_set_reading(struct resolver *r, bool read_files);

/* Frees all symbol tables; files that are still in use are read again at their next sample. */
void resolver_drop_symbols(struct resolver *r);

/*
 * A drain begins: the samples that will be counted were taken since the last one began. (JIT code
 * may change; its names are those of that time.)
 */
void resolver_drain(struct resolver *r);

/* A drain is over: what was not used for some drains is to be forgotten. */
void resolver_tick(struct resolver *r);

/*
 * Next thing that the kernel side shall send again when it meets it: true and its kind
 * and id. Call until false, after resolver_tick.
 */
enum resolver_thing { RESOLVER_STACK, RESOLVER_FACT, RESOLVER_FILE };
bool resolver_next_forgotten(struct resolver *r, enum resolver_thing *ret_thing, uint64_t *ret_id);

/*
 * Next cgroup that the filter does not want and that the kernel side may leave out from now on:
 * true and its id. Call until false, after events.
 */
bool resolver_next_refused(struct resolver *r, uint64_t *ret_cgroup);

/*
 * Next unwind table for the kernel side: true and the file's id. *ret_table is NULL if the file
 * has no unwind data, else to be freed by the caller. Call until false, after events.
 */
bool resolver_next_table(struct resolver *r, uint64_t *ret_file, struct unwind_table **ret_table);

/* Drains since a frame of the file was seen last; UINT32_MAX if it is not known. */
uint32_t resolver_file_age(const struct resolver *r, uint64_t file);

void resolver_totals(const struct resolver *r, struct resolver_totals *ret_totals);

#endif
