/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter's options: checked, copied, and what is parsed out of them. */
#ifndef AGENT_EXPORT_EXPORTER_OPTIONS_H
#define AGENT_EXPORT_EXPORTER_OPTIONS_H

#include "agent/export/exporter.h"
#include "agent/export/pieces.h"

/* Copies with texts that `ret_texts` owns: 0 or -ENOMEM, and then it is all freed. */
struct exporter_texts;
int exporter_options_copy(const struct exporter_options *from, struct exporter_options *ret_options,
			  struct exporter_texts **ret_texts);
bool exporter_options_differ(const struct exporter_options *a, const struct exporter_options *b);
void exporter_texts_free(struct exporter_texts *texts);

/*
 * "name=text,name=text" (NULL: none) into at most EXPORT_MAX_USER_LABELS labels whose texts are in
 * *ret_text, which the caller frees. -EINVAL for a wrong, double or reserved name, or no text.
 */
int exporter_parse_labels(const char *text, char **ret_text,
			  struct push_label labels[EXPORT_MAX_USER_LABELS], size_t *ret_count);

/* Whether a sink in use needs an HTTP client. */
bool exporter_needs_http(const struct exporter_options *options);

#endif
