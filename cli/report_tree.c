/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call trees under the rows of `sonde report`, in the shape of perf report --stdio -g graph:
 * percentages are of the file's total, a run of frames without a fork is one branch, branches
 * under the threshold are summed in the last line.
 *
 * All trees are one array of nodes; a hash from (parent, frame text) finds a child, so adding a
 * stack costs its length. Only rows that can show a branch at all get a tree.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report_private.h"

enum {
	LEFT_MARGIN = 12,
	MAX_FORKS = 64, /* branches inside branches; bounds recursion and the width of lines */
};

static const double MIN_PERCENT = 0.5; /* perf's */

struct tree_node {
	uint32_t text;
	uint32_t first_child, next_sibling; /* node numbers; 0: none */
	int64_t total;
};

struct report_trees {
	struct tree_node *nodes; /* number 0 is unused */
	size_t count, cap;
	struct map children; /* struct child_key -> node number */
	double min_percent;
};

struct child_key {
	uint32_t parent, text;
};

static int new_node(struct report_trees *t, uint32_t text, uint32_t *ret_node)
{
	if (t->count == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 1024;
		struct tree_node *nodes = reallocarray(t->nodes, cap, sizeof(*nodes));

		if (!nodes || cap > UINT32_MAX) {
			if (nodes)
				t->nodes = nodes;
			return -ENOMEM;
		}
		t->nodes = nodes;
		t->cap = cap;
	}
	t->nodes[t->count] = (struct tree_node){ .text = text };
	*ret_node = (uint32_t)t->count++;
	return 0;
}

static int find_child(struct report_trees *t, uint32_t parent, uint32_t text, uint32_t *ret_node)
{
	struct child_key key = { parent, text };
	uint32_t *slot, node;
	int got = map_add(&t->children, &key, &slot);

	if (got < 0)
		return -ENOMEM;
	if (got == 0) {
		*ret_node = *slot;
		return 0;
	}
	if (new_node(t, text, &node))
		return -ENOMEM;
	t->nodes[node].next_sibling = t->nodes[parent].first_child;
	t->nodes[parent].first_child = node;
	*slot = *ret_node = node;
	return 0;
}

/*
 * The part of the stack that the row's tree shows. Callee trees go from the row's frame to its
 * callers. Caller trees go inwards: for a leaf from the outermost frame (else there would be
 * nothing to see), for others from the row's frame, as perf does.
 */
static int add_stack(struct report *r, uint32_t row, const struct report_visit *visit)
{
	struct report_trees *t = r->trees;
	bool caller = strcmp(r->options->call_graph, "caller") == 0;
	uint32_t node = r->rows[row].tree;
	size_t from = visit->at, steps = visit->len - visit->at;

	if (!node)
		return 0;
	if (caller) {
		from = visit->at == 0 ? visit->len - 1 : visit->at;
		steps = from + 1;
	}
	t->nodes[node].total = report_add(t->nodes[node].total, visit->value);
	for (size_t i = 0; i < steps; i++) {
		uint32_t frame = visit->chain[caller ? from - i : from + i];

		if (find_child(t, node, r->frames[frame].text, &node))
			return -ENOMEM;
		t->nodes[node].total = report_add(t->nodes[node].total, visit->value);
	}
	return 0;
}

int report_trees_build(struct report *r, size_t row_count)
{
	struct report_trees *t = calloc(1, sizeof(*t));
	uint32_t unused;

	if (!t)
		return -ENOMEM;
	r->trees = t;
	map_init(&t->children, sizeof(struct child_key), sizeof(uint32_t), UINT32_MAX);
	t->min_percent = r->options->percent_limit > 0 ? r->options->percent_limit : MIN_PERCENT;
	if (new_node(t, 0, &unused))
		return -ENOMEM;
	for (size_t i = 0; i < row_count; i++) {
		if (report_percent(r, report_row_value(r, &r->rows[i])) < t->min_percent)
			break;
		if (new_node(t, 0, &r->rows[i].tree))
			return -ENOMEM;
	}
	return report_walk(r, add_stack);
}

void report_trees_free(struct report_trees *t)
{
	if (!t)
		return;
	free(t->nodes);
	map_fini(&t->children);
	free(t);
}

struct printer {
	const struct report *r;
	const struct report_trees *t;
	struct buf *out;
	struct buf prefix; /* what is left of the branch being printed */
	size_t forks;
};

static void put_prefix(struct printer *pr)
{
	buf_put(pr->out, pr->prefix.data, pr->prefix.len);
}

static const char *node_text(const struct printer *pr, uint32_t node)
{
	return report_text(pr->r, pr->t->nodes[node].text);
}

static int compare_nodes(const void *a, const void *b, void *context)
{
	const struct printer *pr = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	int64_t left_total = pr->t->nodes[left].total, right_total = pr->t->nodes[right].total;

	if (left_total != right_total)
		return left_total < right_total ? 1 : -1;
	return strcmp(node_text(pr, left), node_text(pr, right));
}

/* The children over the threshold, sorted; the others are summed. */
struct branches {
	uint32_t *nodes;
	size_t count;
	size_t rest_count;
	int64_t rest_total;
};

static int collect(struct printer *pr, uint32_t parent, struct branches *b)
{
	const struct tree_node *nodes = pr->t->nodes;
	size_t count = 0;

	for (uint32_t n = nodes[parent].first_child; n; n = nodes[n].next_sibling)
		count++;
	*b = (struct branches){ .nodes = calloc(count + 1, sizeof(*b->nodes)) };
	if (!b->nodes)
		return -ENOMEM;
	for (uint32_t n = nodes[parent].first_child; n; n = nodes[n].next_sibling) {
		if (report_percent(pr->r, nodes[n].total) >= pr->t->min_percent &&
		    pr->forks < MAX_FORKS) {
			b->nodes[b->count++] = n;
		} else {
			b->rest_count++;
			b->rest_total = report_add(b->rest_total, nodes[n].total);
		}
	}
	qsort_r(b->nodes, b->count, sizeof(*b->nodes), compare_nodes, pr);
	return 0;
}

static void print_fork(struct printer *pr, uint32_t parent);

/* The frames below `node` up to the next fork, one a line, then the fork. */
static void print_run(struct printer *pr, uint32_t node)
{
	const struct tree_node *nodes = pr->t->nodes;
	uint32_t child;

	while ((child = nodes[node].first_child) != 0 && !nodes[child].next_sibling &&
	       nodes[child].total == nodes[node].total) {
		put_prefix(pr);
		buf_printf(pr->out, "%s\n", node_text(pr, child));
		node = child;
	}
	if (child)
		print_fork(pr, node);
}

static void print_bar(struct printer *pr)
{
	put_prefix(pr);
	buf_put_str(pr->out, "|\n");
}

static void print_branch(struct printer *pr, uint32_t node, bool last)
{
	size_t len = pr->prefix.len;

	print_bar(pr);
	put_prefix(pr);
	buf_printf(pr->out, "%s%.2f%%--%s\n", last ? " --" : "|--",
		   report_percent(pr->r, pr->t->nodes[node].total), node_text(pr, node));
	buf_put_str(&pr->prefix, last ? "           " : "|          ");
	pr->forks++;
	print_run(pr, node);
	pr->forks--;
	pr->prefix.len = len;
}

static void print_fork(struct printer *pr, uint32_t parent)
{
	struct branches b;

	if (collect(pr, parent, &b)) {
		pr->out->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < b.count; i++)
		print_branch(pr, b.nodes[i], i + 1 == b.count && !b.rest_count);
	if (b.rest_count) {
		print_bar(pr);
		put_prefix(pr);
		buf_printf(pr->out, " --%.2f%%--[%zu more]\n", report_percent(pr->r, b.rest_total),
			   b.rest_count);
	}
	free(b.nodes);
}

void report_trees_print(const struct report *r, const struct report_row *row, struct buf *out)
{
	struct printer pr = { .r = r, .t = r->trees, .out = out };
	const struct tree_node *nodes = r->trees->nodes;
	uint32_t child = nodes[row->tree].first_child;

	buf_init(&pr.prefix, SIZE_MAX / 4);
	buf_printf(&pr.prefix, "%*s", LEFT_MARGIN, "");
	if (child && !nodes[child].next_sibling) {
		print_bar(&pr);
		put_prefix(&pr);
		buf_printf(out, "---%s\n", node_text(&pr, child));
		buf_put_str(&pr.prefix, "   ");
		print_run(&pr, child);
	} else if (child) {
		print_fork(&pr, row->tree);
	}
	buf_put_byte(out, '\n');
	if (buf_error(&pr.prefix))
		out->err = -ENOMEM;
	buf_fini(&pr.prefix);
}
