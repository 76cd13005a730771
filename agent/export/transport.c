/* SPDX-License-Identifier: Apache-2.0 */
/* See transport.h. */
#include "agent/export/transport.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <curl/curl.h>

#include "base/clock.h"
#include "base/parse.h"

/* A peer that does less than this is taken for dead, before the whole time is used up. */
enum { CONNECT_SECONDS = 10, SLOW_BYTES = 10, SLOW_SECONDS = 15, MS_PER_S = 1000 };

struct http_client {
	CURL *curl;
	struct http_settings settings;
	const atomic_bool *stop;
	char error[CURL_ERROR_SIZE];
};

int http_client_init(void)
{
	return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : -ENOMEM;
}

void http_client_free(struct http_client *c)
{
	if (!c)
		return;
	curl_easy_cleanup(c->curl);
	free(c);
}

int http_client_new(const struct http_settings *settings, const atomic_bool *stop,
		    struct http_client **ret_client)
{
	struct http_client *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->settings = *settings;
	c->stop = stop;
	c->curl = curl_easy_init();
	if (!c->curl) {
		http_client_free(c);
		return -ENOMEM;
	}
	*ret_client = c;
	return 0;
}

/* ---- what libcurl calls ---- */

/* Less than was given ends the transfer. */
static size_t on_body(char *bytes, size_t size, size_t count, void *context)
{
	struct http_response *r = context;

	buf_put(&r->body, bytes, size * count);
	return buf_error(&r->body) ? 0 : size * count;
}

/* The text of a header line if it has this name. */
static bool header_is(const char *line, size_t len, const char *name, char *ret_text, size_t size)
{
	size_t name_len = strlen(name);

	if (len <= name_len || strncasecmp(line, name, name_len) != 0 || line[name_len] != ':')
		return false;
	line += name_len + 1;
	len -= name_len + 1;
	while (len && (*line == ' ' || *line == '\t')) {
		line++;
		len--;
	}
	while (len && (line[len - 1] == '\r' || line[len - 1] == '\n'))
		len--;
	snprintf(ret_text, size, "%.*s", (int)(len < size ? len : size - 1), line);
	return true;
}

static size_t on_header(char *line, size_t size, size_t count, void *context)
{
	struct http_response *r = context;
	size_t len = size * count;
	char text[16];
	uint64_t code;

	header_is(line, len, "grpc-message", r->grpc_message, sizeof(r->grpc_message));
	if (header_is(line, len, "grpc-status", text, sizeof(text)) &&
	    !parse_u64(text, 10, &code) && code < 1000)
		r->grpc_status = (int)code;
	return len;
}

static int on_progress(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	const struct http_client *client = context;

	return atomic_load(client->stop);
}

/* ---- a request ---- */

static void set_bounds(struct http_client *c)
{
	CURL *curl = c->curl;

	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS,
			 (long)(c->settings.timeout_ns / (NSEC_PER_SEC / MS_PER_S)));
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)SLOW_SECONDS);
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L); /* no body goes elsewhere */
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, c);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, c->error);
	curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
}

static void set_peer(struct http_client *c)
{
	const struct http_settings *s = &c->settings;
	CURL *curl = c->curl;

	if (s->ca_file)
		curl_easy_setopt(curl, CURLOPT_CAINFO, s->ca_file);
	if (s->cert_file)
		curl_easy_setopt(curl, CURLOPT_SSLCERT, s->cert_file);
	if (s->key_file)
		curl_easy_setopt(curl, CURLOPT_SSLKEY, s->key_file);
	curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, s->no_verify ? 0L : 1L);
	curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, s->no_verify ? 0L : 2L);
	if (s->proxy)
		curl_easy_setopt(curl, CURLOPT_PROXY, s->proxy);
	if (s->no_proxy)
		curl_easy_setopt(curl, CURLOPT_NOPROXY, s->no_proxy);
}

static int add_lines(struct curl_slist **list, const char *const *lines)
{
	for (; lines && *lines; lines++) {
		struct curl_slist *longer = curl_slist_append(*list, *lines);

		if (!longer)
			return -ENOMEM;
		*list = longer;
	}
	return 0;
}

/* Some of them are secrets. libcurl's own copy, in its buffer of the request, is out of reach. */
static void free_lines(struct curl_slist *list)
{
	for (struct curl_slist *line = list; line; line = line->next)
		explicit_bzero(line->data, strlen(line->data));
	curl_slist_free_all(list);
}

static void read_answer(struct http_client *c, struct http_response *r)
{
	const char *type = NULL;
	curl_off_t wait = 0;
	long status = 0;

	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(c->curl, CURLINFO_CONTENT_TYPE, &type);
	curl_easy_getinfo(c->curl, CURLINFO_RETRY_AFTER, &wait);
	r->status = (int)status;
	r->retry_after_s = wait > 0 ? wait : 0;
	snprintf(r->content_type, sizeof(r->content_type), "%s", type ? type : "");
}

static void perform(struct http_client *c, struct http_response *r)
{
	CURLcode code;

	c->error[0] = 0;
	code = curl_easy_perform(c->curl);
	if (code == CURLE_OK) {
		read_answer(c, r);
		return;
	}
	if (code == CURLE_WRITE_ERROR && buf_error(&r->body))
		snprintf(r->error, sizeof(r->error), "the answer is longer than %d bytes",
			 HTTP_ANSWER_BYTES);
	else
		snprintf(r->error, sizeof(r->error), "%s",
			 c->error[0] ? c->error : curl_easy_strerror(code));
}

void http_client_post(struct http_client *c, const struct http_request *request,
		      struct http_response *ret_response)
{
	struct http_response *r = ret_response;
	struct curl_slist *lines = NULL;

	*r = (struct http_response){ .grpc_status = -1 };
	buf_init(&r->body, HTTP_ANSWER_BYTES);
	curl_easy_reset(c->curl); /* options, not connections */
	set_bounds(c);
	set_peer(c);
	/* A server that reads no body before it answers would have us wait. */
	if (add_lines(&lines, request->headers) || add_lines(&lines, request->more) ||
	    add_lines(&lines, (const char *const[]){ "Expect:", NULL })) {
		snprintf(r->error, sizeof(r->error), "%s", strerror(ENOMEM));
		goto out;
	}
	curl_easy_setopt(c->curl, CURLOPT_URL, request->url);
	curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, lines);
	curl_easy_setopt(c->curl, CURLOPT_POST, 1L);
	curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, request->body ? request->body : "");
	curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->len);
	curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, r);
	curl_easy_setopt(c->curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(c->curl, CURLOPT_HEADERDATA, r);
	perform(c, r);
out:
	free_lines(lines);
}

void http_response_fini(struct http_response *r)
{
	buf_fini(&r->body);
}
