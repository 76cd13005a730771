/* SPDX-License-Identifier: Apache-2.0 */
/* `sonde doctor`: what this kernel and these privileges allow, and what to do about the rest. */
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "agent/health.h"
#include "agent/version.h"
#include "base/buf.h"
#include "base/text.h"
#include "cli/commands.h"

enum { MAX_FINDINGS = 64, TITLE_COLUMNS = 24, TEXT_BYTES = 4096 };

struct doctor_options {
	bool json;
	const char *debug_dir;
};

#define FIELD(name) offsetof(struct doctor_options, name)

const struct option_row doctor_rows[] = {
	{ "json", 0, OPTION_FLAG, NULL, NULL, 0, 0, FIELD(json), "machine-readable output" },
	{ "debug-dir", 0, OPTION_TEXT, "DIR", "/usr/lib/debug", 0, 0, FIELD(debug_dir),
	  "where separate debug files are" },
	{ 0 },
};

static bool can_record(const struct health_finding *findings, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (findings[i].status == HEALTH_FAIL)
			return false;
	}
	return true;
}

/* Files of the kernel are quoted in findings, so their bytes are made safe here. */
static void print_text(const char *head, const char *text)
{
	struct buf clean;
	const char *shown;

	buf_init(&clean, TEXT_BYTES);
	text_escape(&clean, text, strlen(text));
	shown = buf_cstr(&clean);
	printf("%s%s\n", head, shown ? shown : "(out of memory)");
	buf_fini(&clean);
}

static void print_finding(const struct health_finding *f)
{
	printf("%-4s  %-*s  ", health_status_name(f->status), TITLE_COLUMNS, f->title);
	print_text("", f->found);
	if (f->status == HEALTH_OK)
		return;
	print_text("      lost: ", f->lost);
	print_text("      cure: ", f->cure);
}

static void print_table(const struct health_finding *findings, size_t count)
{
	size_t by_status[HEALTH_FAIL + 1] = { 0 };

	for (size_t i = 0; i < count; i++) {
		print_finding(&findings[i]);
		by_status[findings[i].status]++;
	}
	printf("\n%s: %zu ok, %zu to know, %zu degraded, %zu fatal\n",
	       can_record(findings, count) ? "sonde can record here" : "sonde cannot record here",
	       by_status[HEALTH_OK], by_status[HEALTH_NOTE], by_status[HEALTH_WARN],
	       by_status[HEALTH_FAIL]);
}

static json_t *json_text(const char *text)
{
	struct buf clean;
	json_t *value;

	buf_init(&clean, TEXT_BYTES);
	text_escape(&clean, text, strlen(text));
	value = buf_error(&clean)
			? NULL
			: json_stringn((const char *)clean.data ? (const char *)clean.data : "",
				       clean.len);
	buf_fini(&clean);
	return value;
}

static json_t *json_finding(const struct health_finding *f)
{
	/* "o" takes the texts over, also on failure. */
	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "id", f->id, "title", f->title, "status",
			 health_status_name(f->status), "found", json_text(f->found), "lost",
			 json_text(f->lost), "cure", json_text(f->cure));
}

static int print_json(const struct health_finding *findings, size_t count)
{
	json_t *list = json_array(), *root;
	int err = list ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < count; i++) {
		if (json_array_append_new(list, json_finding(&findings[i])))
			err = -ENOMEM;
	}
	root = json_pack("{s:s, s:b, s:o}", "version", SONDE_VERSION, "can_record",
			 can_record(findings, count), "checks", list);
	if (!root)
		err = -ENOMEM;
	if (!err && json_dumpf(root, stdout, JSON_INDENT(2)))
		err = -EIO;
	json_decref(root);
	if (!err)
		putchar('\n');
	return err;
}

int doctor_main(int argc, char **argv)
{
	struct doctor_options options = { 0 };
	struct health_finding findings[MAX_FINDINGS];
	struct health_roots roots = { .proc = "/proc", .sys = "/sys" };
	int rest, err = command_options("doctor", argc, argv, &options, &rest);
	size_t count;

	if (err)
		return err == 1 ? 0 : 2;
	if (rest < argc) {
		fprintf(stderr, "sonde doctor: '%s' is one argument too many\n", argv[rest]);
		return 2;
	}
	roots.debug_dir = options.debug_dir;
	count = health_check(&roots, findings, MAX_FINDINGS);
	if (!options.json)
		print_table(findings, count);
	else
		err = print_json(findings, count);
	if (err || fflush(stdout)) {
		fprintf(stderr, "sonde doctor: %s\n", strerror(err ? -err : errno));
		return 1;
	}
	return can_record(findings, count) ? 0 : 1;
}
