/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server; see http.h. The static program has http_none.c in its place. */
#include "agent/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/parse.h"

enum {
	MAX_CONNECTIONS = 16,
	TIMEOUT_SECONDS = 10,
	CONNECTION_BYTES = 16 * 1024, /* request line and headers */
	BODY_BYTES = 8 << 20,
};

struct http_server {
	struct MHD_Daemon *daemon;
	const struct http_route *routes;
	void *context;
	int epoll_fd;
};

/* An address and port, as text into the shape that bind() takes. */
struct endpoint {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	};
	socklen_t size;
};

static void endpoint_v4(struct endpoint *e, struct in_addr host, uint16_t port)
{
	e->v4 = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_port = htons(port),
				      .sin_addr = host };
	e->size = sizeof(e->v4);
}

static void endpoint_v6(struct endpoint *e, struct in6_addr host, uint16_t port)
{
	e->v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
				       .sin6_port = htons(port),
				       .sin6_addr = host };
	e->size = sizeof(e->v6);
}

/* "127.0.0.1:9464", "[::1]:9464", ":9464"; numeric only: no name service at start. */
static int endpoint_parse(const char *address, struct endpoint *ret_endpoint)
{
	const char *colon = strrchr(address, ':');
	char host[INET6_ADDRSTRLEN + 2] = "";
	struct in6_addr v6;
	struct in_addr v4;
	uint64_t port;
	size_t len;

	if (!colon || parse_u64(colon + 1, 10, &port) || port > UINT16_MAX)
		return -EINVAL;
	len = (size_t)(colon - address);
	if (len >= sizeof(host))
		return -EINVAL;
	memcpy(host, address, len);
	if (len == 0) {
		endpoint_v6(ret_endpoint, in6addr_any, (uint16_t)port);
		return 0;
	}
	if (host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = 0;
		if (inet_pton(AF_INET6, host + 1, &v6) != 1)
			return -EINVAL;
		endpoint_v6(ret_endpoint, v6, (uint16_t)port);
		return 0;
	}
	if (inet_pton(AF_INET, host, &v4) != 1)
		return -EINVAL;
	endpoint_v4(ret_endpoint, v4, (uint16_t)port);
	return 0;
}

/* Our own socket, since libmicrohttpd does not say why it could not make one. */
static int listen_on(const struct endpoint *e)
{
	int fd = socket(e->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1, off = 0, err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (e->any.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, &e->any, e->size) == 0 && listen(fd, MAX_CONNECTIONS) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int open_socket(const char *address, int *ret_fd)
{
	struct endpoint endpoint;
	int fd, err = endpoint_parse(address, &endpoint);

	if (err)
		return err;
	fd = listen_on(&endpoint);
	if (fd == -EAFNOSUPPORT && address[0] == ':') {
		endpoint_v4(&endpoint, (struct in_addr){ INADDR_ANY },
			    ntohs(endpoint.v6.sin6_port));
		fd = listen_on(&endpoint);
	}
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

static enum MHD_Result reply(struct MHD_Connection *connection, int status, const char *type,
			     const struct buf *body)
{
	struct MHD_Response *response;
	enum MHD_Result queued;

	response = MHD_create_response_from_buffer(body->len, body->data, MHD_RESPMEM_MUST_COPY);
	if (!response)
		return MHD_NO; /* closes the connection */
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	queued = MHD_queue_response(connection, (unsigned)status, response);
	MHD_destroy_response(response);
	return queued;
}

static const struct http_route *find(const struct http_server *s, const char *path)
{
	for (const struct http_route *route = s->routes; route->path; route++) {
		if (strcmp(route->path, path) == 0)
			return route;
	}
	return NULL;
}

/* Answers as soon as the headers are there; a body that follows is not read. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
				  const char *path, const char *method, const char *version,
				  const char *upload, size_t *upload_size, void **state)
{
	static const char plain[] = "text/plain; charset=utf-8";
	struct http_server *s = context;
	const struct http_route *route = find(s, path);
	const char *type = plain;
	enum MHD_Result result;
	struct buf body;
	int status;

	buf_init(&body, BODY_BYTES);
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
		status = MHD_HTTP_METHOD_NOT_ALLOWED;
		buf_put_str(&body, "only GET and HEAD\n");
	} else if (!route) {
		status = MHD_HTTP_NOT_FOUND;
		buf_put_str(&body, "no such page\n");
	} else {
		type = route->content_type;
		status = route->handler(s->context, &body);
	}
	if (buf_error(&body)) {
		buf_reset(&body);
		status = MHD_HTTP_INTERNAL_SERVER_ERROR;
		type = plain;
		buf_put_str(&body, "out of memory, or the answer is too large\n");
	}
	result = reply(connection, status, type, &body);
	buf_fini(&body);
	return result;
}

/* Takes the socket over. */
static int start(struct http_server *s, int fd)
{
	const union MHD_DaemonInfo *info;

	s->daemon = MHD_start_daemon(
		MHD_USE_EPOLL, 0, NULL, NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET,
		(MHD_socket)fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)MAX_CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_SECONDS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_END);
	if (!s->daemon) {
		close(fd);
		return -ENOMEM;
	}
	info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info)
		return -ENOTSUP;
	s->epoll_fd = info->epoll_fd;
	return 0;
}

static void explain(int err, const char *address, char *reason, size_t size)
{
	const char *cure = "";

	if (err == -EINVAL) {
		snprintf(reason, size,
			 "'%s' is no address to listen on, such as 127.0.0.1:9464, [::1]:9464 or "
			 ":9464",
			 address);
		return;
	}
	if (err == -EADDRINUSE)
		cure = "; is another agent running? choose another port";
	else if (err == -EACCES)
		cure = "; choose a port from 1024 on";
	snprintf(reason, size, "cannot listen on %s: %s%s", address, strerror(-err), cure);
}

int http_open(const char *address, const struct http_route *routes, void *context,
	      struct http_server **ret_server, char *reason, size_t reason_size)
{
	struct http_server *s = calloc(1, sizeof(*s));
	int fd = -1, err = s ? open_socket(address, &fd) : -ENOMEM;

	if (!err) {
		s->routes = routes;
		s->context = context;
		err = start(s, fd);
	}
	if (err) {
		explain(err, address, reason, reason_size);
		http_close(s);
		return err;
	}
	*ret_server = s;
	return 0;
}

void http_close(struct http_server *s)
{
	if (!s)
		return;
	if (s->daemon)
		MHD_stop_daemon(s->daemon);
	free(s);
}

int http_fd(const struct http_server *s)
{
	return s->epoll_fd;
}

void http_run(struct http_server *s)
{
	MHD_run(s->daemon);
}
