/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's HTTP server (libmicrohttpd): GET only, a few fixed paths, on a loopback address by
 * default. It has no thread: its epoll fd goes into the caller's loop. So a loop that hangs
 * does not answer, which is what a liveness probe wants to know.
 */
#ifndef AGENT_HTTP_H
#define AGENT_HTTP_H

#include <stddef.h>

#include "base/buf.h"

struct http_server;

/* Fills `body` (bounded) and returns the HTTP status. */
struct http_route {
	const char *path; /* the last row has NULL */
	const char *content_type;
	int (*handler)(void *context, struct buf *body);
};

/*
 * Listens on "127.0.0.1:9464", "[::1]:9464" or ":9464" (all addresses). Bounded: 16
 * connections, 10 s each. `reason` gets one line on failure.
 */
int http_open(const char *address, const struct http_route *routes, void *context,
	      struct http_server **ret_server, char *reason, size_t reason_size);
void http_close(struct http_server *s);
int http_fd(const struct http_server *s);

/* To be called when the fd is readable, and at least once a second. */
void http_run(struct http_server *s);

#endif
