/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One HTTP request at a time, by libcurl: connections are kept, TLS is verified, all is bounded in
 * time and size. Blocks its thread; `stop` ends it early.
 */
#ifndef AGENT_EXPORT_TRANSPORT_H
#define AGENT_EXPORT_TRANSPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct http_settings {
	const char *ca_file;              /* NULL: the system's */
	const char *cert_file, *key_file; /* for mutual TLS; NULL: none */
	const char *proxy;                /* NULL: as the environment says; "": none */
	const char *no_proxy;             /* NULL: as the environment says */
	bool no_verify;
	uint64_t timeout_ns; /* of a whole request */
};

struct http_request {
	const char *url;
	const char *const *headers; /* lines, NULL-ended */
	const char *const *more;    /* lines, NULL-ended, or NULL */
	const void *body;
	size_t len;
};

enum { HTTP_ANSWER_BYTES = 64 * 1024, HTTP_ERROR_BYTES = 384 };

struct http_response {
	int status; /* 0: no answer, `error` says why */
	char content_type[64];
	int grpc_status; /* of the headers; -1: not there */
	char grpc_message[128];
	int64_t retry_after_s; /* 0: not said */
	struct buf body;       /* at most HTTP_ANSWER_BYTES */
	char error[HTTP_ERROR_BYTES];
};

struct http_client;

/* Once, before the first thread: 0 or -errno. -ENOSYS in a build without libcurl. */
int http_client_init(void);

int http_client_new(const struct http_settings *settings, const atomic_bool *stop,
		    struct http_client **ret_client);
void http_client_free(struct http_client *c);

/* POST. Fills the response, which http_response_fini frees, in all cases. */
void http_client_post(struct http_client *c, const struct http_request *request,
		      struct http_response *ret_response);
void http_response_fini(struct http_response *r);

#endif
