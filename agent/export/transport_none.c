/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In place of transport.c in the static program: Debian's static libcurl has no static
 * libraries to stand on. That program can write to a directory only.
 */
#include <errno.h>

#include "agent/export/transport.h"

int http_client_init(void)
{
	return -ENOSYS;
}

int http_client_new(const struct http_settings *settings, const atomic_bool *stop,
		    struct http_client **ret_client)
{
	return -ENOSYS;
}

void http_client_free(struct http_client *c)
{
}

void http_client_post(struct http_client *c, const struct http_request *request,
		      struct http_response *ret_response)
{
	*ret_response = (struct http_response){ .error = "this program has no HTTP client" };
}

void http_response_fini(struct http_response *r)
{
}
