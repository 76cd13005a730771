/* SPDX-License-Identifier: Apache-2.0 */
/* See report_store.h. */
#include "cli/report_store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "agent/store/store.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/report_private.h"
#include "proto/merge.h"

static const size_t MAX_MERGED = 8UL << 30;
static const int64_t NS = (int64_t)NSEC_PER_SEC;
static const int64_t DAY_NS = 24 * 60 * 60 * (int64_t)NSEC_PER_SEC;

/* What people ask for who name no type: time on a CPU, or the cycles of it. */
static const char *const default_types[] = { "cpu", "cycles" };

/* ---- times ---- */

static const char *const with_day[] = { "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S",
					"%Y-%m-%dT%H:%M",    "%Y-%m-%d",       NULL };
static const char *const without_day[] = { "%H:%M:%S", "%H:%M", NULL };

/* Whether one of the forms is the whole text, but for a Z. */
static bool parse_forms(const char *text, const char *const *forms, struct tm *tm)
{
	for (; *forms; forms++) {
		struct tm fields = *tm;
		const char *end = strptime(text, *forms, &fields);

		if (end && (!*end || strcmp(end, "Z") == 0)) {
			*tm = fields;
			return true;
		}
	}
	return false;
}

static int to_ns(struct tm *tm, int64_t *ret_ns)
{
	int day = tm->tm_mday;
	time_t seconds = timegm(tm);
	int64_t ns;

	/* timegm makes March of February 30. */
	if (tm->tm_mday != day || seconds < 0 || __builtin_mul_overflow((int64_t)seconds, NS, &ns))
		return -EINVAL;
	*ret_ns = ns;
	return 0;
}

static int time_of_day(struct tm *tm, int64_t now_ns, int64_t *ret_ns)
{
	time_t now_s = (time_t)(now_ns / NS);
	struct tm today = { 0 };
	int64_t ns;
	int err;

	gmtime_r(&now_s, &today);
	tm->tm_year = today.tm_year;
	tm->tm_mon = today.tm_mon;
	tm->tm_mday = today.tm_mday;
	err = to_ns(tm, &ns);
	if (!err)
		*ret_ns = ns > now_ns ? ns - DAY_NS : ns;
	return err;
}

int report_parse_time(const char *text, int64_t now_ns, int64_t *ret_ns)
{
	struct tm tm = { 0 };
	uint64_t ago;

	if (strcmp(text, "now") == 0) {
		*ret_ns = now_ns;
		return 0;
	}
	if (parse_duration(text, &ago) == 0) {
		*ret_ns = ago < (uint64_t)now_ns ? now_ns - (int64_t)ago : 1;
		return 0;
	}
	if (parse_forms(text, with_day, &tm))
		return to_ns(&tm, ret_ns);
	if (parse_forms(text, without_day, &tm))
		return time_of_day(&tm, now_ns, ret_ns);
	return -EINVAL;
}

static int option_time(const char *name, const char *text, int64_t now_ns, int64_t *ret_ns,
		       struct buf *reason)
{
	if (!text || report_parse_time(text, now_ns, ret_ns) == 0)
		return 0;
	buf_printf(reason, "--%s: '", name);
	text_escape(reason, text, strlen(text));
	buf_put_str(reason, "' is no time, such as 1h (ago), 03:12 or '2026-11-29 03:12' (UTC)");
	return -EINVAL;
}

static void put_time(struct buf *out, int64_t ns)
{
	time_t seconds = (time_t)(ns / NS);
	char text[32];
	struct tm tm;

	if (gmtime_r(&seconds, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
		buf_put_str(out, text);
}

/* ---- which profiles ---- */

struct selection {
	const char *dir, *type;
	int64_t since_ns, until_ns; /* 0: open */
	struct store_list list;
	size_t merged, gone, damaged, different;
	int64_t covered_ns;
};

static bool one_type(const struct store_list *list)
{
	for (size_t i = 1; i < list->count; i++) {
		if (strcmp(list->entries[i].type, list->entries[0].type) != 0)
			return false;
	}
	return true;
}

static const char *choose_type(const struct store_list *list)
{
	for (size_t i = 0; i < sizeof(default_types) / sizeof(default_types[0]); i++) {
		for (size_t k = 0; k < list->count; k++) {
			if (strcmp(list->entries[k].type, default_types[i]) == 0)
				return default_types[i];
		}
	}
	return default_types[0];
}

static void put_range(const struct selection *s, struct buf *out)
{
	if (s->since_ns) {
		buf_put_str(out, " since ");
		put_time(out, s->since_ns);
	}
	if (s->until_ns) {
		buf_put_str(out, " until ");
		put_time(out, s->until_ns);
	}
	if (s->since_ns || s->until_ns)
		buf_put_str(out, " UTC");
}

static int explain_nothing(const struct selection *s, struct buf *reason)
{
	buf_put_str(reason, "the store has no profile");
	if (s->type) {
		buf_put_str(reason, " of type '");
		text_escape(reason, s->type, strlen(s->type));
		buf_put_byte(reason, '\'');
	}
	put_range(s, reason);
	return -ENOENT;
}

static int list_profiles(struct selection *s, struct buf *reason)
{
	int err = store_list(s->dir, s->since_ns, s->until_ns, s->type, &s->list);

	if (err == -ENOENT) {
		buf_put_str(reason,
			    "Is a directory, but no store of sonde agent (no profiles/ in it)");
		return err;
	}
	if (err) {
		buf_put_str(reason, strerror(-err));
		return err;
	}
	if (s->list.count == 0)
		return explain_nothing(s, reason);
	if (s->type || one_type(&s->list))
		return 0;
	/* Several kinds of profiles cannot be one. */
	s->type = choose_type(&s->list);
	store_list_fini(&s->list);
	return list_profiles(s, reason);
}

static int parse_range(struct selection *s, const struct report_options *options, int64_t now_ns,
		       struct buf *reason)
{
	int err = option_time("since", options->since, now_ns, &s->since_ns, reason);

	if (!err)
		err = option_time("until", options->until, now_ns, &s->until_ns, reason);
	if (!err && s->until_ns && s->until_ns <= s->since_ns) {
		buf_put_str(reason, "--until is not after --since: nothing");
		put_range(s, reason);
		err = -EINVAL;
	}
	return err;
}

/* ---- one profile of them ---- */

static void warn_left_out(const struct selection *s, const struct store_entry *entry,
			  const char *why, FILE *warnings)
{
	struct buf line;

	buf_init(&line, 64 << 10);
	text_escape(&line, entry->path, strlen(entry->path));
	buf_put_str(&line, ": ");
	buf_put_str(&line, why);
	fprintf(warnings, "sonde report: %s; it is left out\n",
		buf_cstr(&line) ? (const char *)line.data : s->dir);
	buf_fini(&line);
}

static int add_profile(struct selection *s, const struct store_entry *entry, struct profile *merged,
		       FILE *warnings)
{
	struct profile *p = NULL;
	struct buf why;
	int err;

	buf_init(&why, 4096);
	err = report_load_file(entry->path, &p, &why);
	if (err == -ENOENT) {
		s->gone++; /* for a cap, since it was listed */
	} else if (err) {
		s->damaged++;
		warn_left_out(s, entry, buf_cstr(&why) ? (const char *)why.data : strerror(-err),
			      warnings);
	}
	buf_fini(&why);
	if (err)
		return 0;
	err = profile_merge(merged, p);
	if (err == -EINVAL) {
		s->different++;
		warn_left_out(s, entry, "it measures something else than the first one", warnings);
		err = 0;
	} else if (!err) {
		s->merged++;
		s->covered_ns = report_add(s->covered_ns, p->duration_ns > 0 ? p->duration_ns : 0);
	}
	profile_free(p);
	return err;
}

static int note_coverage(const struct selection *s, struct profile *merged)
{
	return profile_add_comment(
		merged, "merged from %zu profiles of type %s, which cover %.1f s%s", s->merged,
		s->list.entries[0].type, (double)s->covered_ns / (double)NS,
		s->damaged + s->different + s->gone ? "; others are left out, see the warnings"
						    : "");
}

static int merge_all(struct selection *s, struct profile **ret_profile, struct buf *reason,
		     FILE *warnings)
{
	struct profile *merged;
	int err = profile_new(MAX_MERGED, &merged);

	if (err)
		return err;
	for (size_t i = 0; !err && i < s->list.count; i++)
		err = add_profile(s, &s->list.entries[i], merged, warnings);
	if (!err && s->merged == 0) {
		buf_printf(reason, "none of the %zu profiles in that time can be read",
			   s->list.count);
		err = -EBADMSG;
	}
	if (!err)
		err = note_coverage(s, merged);
	if (err)
		profile_free(merged);
	else
		*ret_profile = merged;
	return err;
}

int report_store_load(const struct report_options *options, int64_t now_ns,
		      struct profile **ret_profile, struct buf *reason, FILE *warnings)
{
	struct selection s = { .dir = options->path, .type = options->type };
	int err = parse_range(&s, options, now_ns, reason);

	if (!err)
		err = list_profiles(&s, reason);
	if (!err)
		err = merge_all(&s, ret_profile, reason, warnings);
	store_list_fini(&s.list);
	return err;
}
