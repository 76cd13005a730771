/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No HTTP server: takes the place of http.c in the static program, since Debian's libmicrohttpd.a
 * needs a static GnuTLS with all below it.
 */
#include "agent/http.h"

#include <errno.h>
#include <stdio.h>

int http_open(const char *address, const struct http_route *routes, void *context,
	      struct http_server **ret_server, char *reason, size_t reason_size)
{
	snprintf(reason, reason_size,
		 "cannot listen on %s: the static program has no HTTP server; --listen off, or use "
		 "the dynamic one",
		 address);
	return -ENOSYS;
}

void http_close(struct http_server *s)
{
}

int http_fd(const struct http_server *s)
{
	return -1;
}

void http_run(struct http_server *s)
{
}
