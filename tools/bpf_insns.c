/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Development tool: loads a BPF object and prints how many instructions the verifier walked
 * for each program, the number that decides whether other kernels accept it. It loads with
 * everything switched on, once for each kind of target, and prints the highest number: what
 * the settings switch off, the verifier does not see.
 *
 * Where the object cannot be loaded (no root, old kernel) it says why on stderr and still exits
 * 0, since a build must not fail for that; with -c (check) it exits 1.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bpf/abi.h"

enum { MAX_PROGRAMS = 32 };

struct result {
	const char *name;
	__u32 verified; /* 0: kernels before 5.16 do not tell */
	size_t insns;
	int err;
};

static const __u32 modes[] = { SONDE_TARGET_ALL, SONDE_TARGET_PROCESSES, SONDE_TARGET_CGROUP };

/* The object's `settings` variable before loading, or NULL. */
static struct sonde_settings *find_settings(struct bpf_object *obj)
{
	const struct btf *btf = bpf_object__btf(obj);
	struct bpf_map *map = bpf_object__find_map_by_name(obj, ".rodata");
	int id = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);
	const struct btf_type *section = id < 0 ? NULL : btf__type_by_id(btf, (__u32)id);
	size_t size;
	char *value = map ? (char *)bpf_map__initial_value(map, &size) : NULL;

	for (int i = 0; section && value && i < btf_vlen(section); i++) {
		const struct btf_var_secinfo *var = btf_var_secinfos(section) + i;
		const struct btf_type *type = btf__type_by_id(btf, var->type);

		if (!strcmp(btf__name_by_offset(btf, type->name_off), "settings") &&
		    var->offset + sizeof(struct sonde_settings) <= size)
			return (struct sonde_settings *)(value + var->offset);
	}
	return NULL;
}

static void keep_result(struct result *result, const struct bpf_program *prog)
{
	struct bpf_prog_info info = { 0 };
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &len))
		return;
	result->insns = bpf_program__insn_cnt(prog);
	if (info.verified_insns > result->verified)
		result->verified = info.verified_insns;
}

/* The verifier's last words, which say why. */
static void print_tail(const char *log)
{
	const char *p = log + strlen(log);

	for (int lines = 0; p > log && lines < 5; lines += *p == '\n')
		p--;
	fprintf(stderr, "%s", p > log ? p + 1 : p);
}

/* Loads all programs, or only number `only` (-1: all), and notes what came of it. */
static int load(const char *path, __u32 mode, int only, struct result *results)
{
	struct bpf_object *obj = bpf_object__open_file(path, NULL);
	struct sonde_settings *settings;
	static char log[16 << 20];
	struct bpf_program *prog;
	int err, i = 0;

	if (!obj)
		return -1;
	settings = find_settings(obj);
	if (settings)
		*settings = (struct sonde_settings){ .seed = 1, .target_mode = mode, .keep_idle = 1,
						     .thread_names = 1, .user_stacks = 1,
						     .kernel_stacks = 1, .page_shift = 12 };
	bpf_object__for_each_program(prog, obj) {
		bpf_program__set_autoload(prog, only < 0 || only == i);
		if (only == i++)
			bpf_program__set_log_buf(prog, log, sizeof(log));
	}
	err = settings ? bpf_object__load(obj) : -1;
	i = 0;
	bpf_object__for_each_program(prog, obj) {
		if (i < MAX_PROGRAMS && !err && bpf_program__fd(prog) >= 0)
			keep_result(&results[i], prog);
		if (only == i && err) {
			results[i].err = err;
			print_tail(log);
		}
		i++;
	}
	bpf_object__close(obj);
	return err;
}

static int name_programs(const char *path, struct result *results)
{
	static char names[MAX_PROGRAMS][64];
	struct bpf_object *obj = bpf_object__open_file(path, NULL);
	struct bpf_program *prog;
	int n = 0;

	if (!obj)
		return 0;
	bpf_object__for_each_program(prog, obj) {
		if (n == MAX_PROGRAMS)
			break;
		snprintf(names[n], sizeof(names[n]), "%s", bpf_program__name(prog));
		results[n].name = names[n];
		n++;
	}
	bpf_object__close(obj);
	return n;
}

static bool print_results(const struct result *results, int n)
{
	bool refused = n == 0;

	for (int i = 0; i < n; i++) {
		const struct result *r = &results[i];

		if (r->err) {
			fprintf(stderr, "  VERIFY  %-24s not loaded here: %s\n", r->name,
				strerror(-r->err));
			refused = true;
			continue;
		}
		printf("  VERIFY  %-24s %7u instructions verified, %6zu in the program\n", r->name,
		       r->verified, r->insns);
	}
	return refused;
}

int main(int argc, char **argv)
{
	bool check = argc == 3 && strcmp(argv[1], "-c") == 0;
	struct result results[MAX_PROGRAMS] = { 0 };
	bool refused;
	int n;

	if (argc != 2 && !check) {
		fprintf(stderr, "usage: bpf_insns [-c] OBJECT\n");
		return 2;
	}
	if (geteuid() != 0)
		return check;
	libbpf_set_print(NULL);
	n = name_programs(argv[argc - 1], results);
	for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
		/* One program that is refused must not hide the numbers of the others. */
		if (!load(argv[argc - 1], modes[m], -1, results))
			continue;
		for (int i = 0; i < n; i++) {
			if (!results[i].err)
				load(argv[argc - 1], modes[m], i, results);
		}
	}
	refused = print_results(results, n);
	return check && refused;
}
