/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/http with real sockets; the test is the loop. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/http.h"
#include "base/clock.h"

enum { ANSWER_BYTES = 8192, MAX_CONNECTIONS = 16 };

static char answer[ANSWER_BYTES];
static char address[64];
static uint16_t port;

static int on_metrics(void *context, struct buf *body)
{
	buf_printf(body, "calls %d\n", ++*(int *)context);
	return 200;
}

static int on_health(void *context, struct buf *body)
{
	buf_put_str(body, "loop is late\n");
	return 503;
}

static int on_huge(void *context, struct buf *body)
{
	buf_reserve(body, (size_t)64 << 20);
	return 200;
}

static const struct http_route routes[] = {
	{ "/metrics", "text/plain; version=0.0.4; charset=utf-8", on_metrics },
	{ "/healthz", "text/plain", on_health },
	{ "/huge", "text/plain", on_huge },
	{ 0 },
};

/* A port that was free a moment ago. */
static void choose_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(a);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, size), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &size), 0);
	close(fd);
	port = ntohs(a.sin_port);
	snprintf(address, sizeof(address), "127.0.0.1:%u", port);
}

static struct http_server *open_server(int *calls)
{
	struct http_server *s = NULL;
	char reason[256] = "";

	choose_port();
	if (http_open(address, routes, calls, &s, reason, sizeof(reason)))
		fail_msg("%s", reason);
	assert_true(http_fd(s) >= 0);
	return s;
}

static int dial(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

/* Runs the server until the client's connection is closed, or for 5 s; fills `answer`. */
static void read_answer(struct http_server *s, int fd)
{
	nsec_t end = clock_monotonic() + 5 * NSEC_PER_SEC;
	size_t len = 0;

	answer[0] = 0;
	while (clock_monotonic() < end) {
		struct pollfd fds[] = { { .fd = http_fd(s), .events = POLLIN },
					{ .fd = fd, .events = POLLIN } };
		ssize_t n;

		poll(fds, 2, 100);
		http_run(s);
		n = recv(fd, answer + len, sizeof(answer) - 1 - len, 0);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			return;
		len += n > 0 ? (size_t)n : 0;
		answer[len] = 0;
	}
	fail_msg("no end within 5 s of: %s", answer);
}

static void ask(struct http_server *s, const char *method, const char *path, const char *more)
{
	char request[512];
	int fd = dial(), n;

	n = snprintf(request, sizeof(request),
		     "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s", method, path,
		     more);
	assert_int_equal(send(fd, request, (size_t)n, MSG_NOSIGNAL), n);
	read_answer(s, fd);
	close(fd);
}

static const char *body(void)
{
	const char *end = strstr(answer, "\r\n\r\n");

	return end ? end + 4 : "(no body)";
}

static void test_get(void **state)
{
	int calls = 0;
	struct http_server *s = open_server(&calls);

	ask(s, "GET", "/metrics", "\r\n");
	assert_ptr_equal(strstr(answer, "HTTP/1.1 200 "), answer);
	assert_non_null(
		strstr(answer, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
	assert_string_equal(body(), "calls 1\n");
	ask(s, "GET", "/metrics?x=1", "\r\n");
	assert_string_equal(body(), "calls 2\n");
	ask(s, "GET", "/healthz", "\r\n");
	assert_ptr_equal(strstr(answer, "HTTP/1.1 503 "), answer);
	assert_string_equal(body(), "loop is late\n");
	http_close(s);
}

static void test_head(void **state)
{
	int calls = 0;
	struct http_server *s = open_server(&calls);

	ask(s, "HEAD", "/metrics", "\r\n");
	assert_ptr_equal(strstr(answer, "HTTP/1.1 200 "), answer);
	assert_non_null(strstr(answer, "Content-Length: 8\r\n"));
	assert_string_equal(body(), "");
	http_close(s);
}

static void test_refusals(void **state)
{
	int calls = 0;
	struct http_server *s = open_server(&calls);

	ask(s, "GET", "/", "\r\n");
	assert_ptr_equal(strstr(answer, "HTTP/1.1 404 "), answer);
	ask(s, "GET", "/metrics/", "\r\n");
	assert_ptr_equal(strstr(answer, "HTTP/1.1 404 "), answer);
	ask(s, "POST", "/metrics", "Content-Length: 3\r\n\r\nabc");
	assert_ptr_equal(strstr(answer, "HTTP/1.1 405 "), answer);
	assert_non_null(strstr(answer, "Allow: GET, HEAD\r\n"));
	ask(s, "DELETE", "/metrics", "\r\n");
	assert_ptr_equal(strstr(answer, "HTTP/1.1 405 "), answer);
	ask(s, "GET", "/huge", "\r\n");
	assert_ptr_equal(strstr(answer, "HTTP/1.1 500 "), answer);
	assert_int_equal(calls, 0);
	ask(s, "GET", "/metrics", "\r\n");
	assert_string_equal(body(), "calls 1\n");
	http_close(s);
}

/* Headers without end: an error or a closed connection, and the next one is served. */
static void test_endless_headers(void **state)
{
	int calls = 0, fd, got = 0;
	struct http_server *s = open_server(&calls);
	static const char line[] = "X-Filler: 0123456789012345678901234567890123456789\r\n";

	fd = dial();
	send(fd, "GET /metrics HTTP/1.1\r\n", 23, MSG_NOSIGNAL);
	for (int i = 0; i < 2000 && got >= 0; i++) {
		got = (int)send(fd, line, sizeof(line) - 1, MSG_NOSIGNAL);
		http_run(s);
	}
	read_answer(s, fd);
	close(fd);
	assert_true(answer[0] == 0 || strstr(answer, "HTTP/1.1 4") == answer);
	ask(s, "GET", "/metrics", "\r\n");
	assert_string_equal(body(), "calls 1\n");
	http_close(s);
}

static void test_idle_connections(void **state)
{
	int calls = 0, idle[MAX_CONNECTIONS + 8];
	struct http_server *s = open_server(&calls);

	for (int i = 0; i < MAX_CONNECTIONS - 1; i++) {
		idle[i] = dial();
		http_run(s);
	}
	ask(s, "GET", "/metrics", "\r\n");
	assert_string_equal(body(), "calls 1\n");
	for (int i = MAX_CONNECTIONS - 1; i < MAX_CONNECTIONS + 8; i++) {
		idle[i] = dial();
		http_run(s);
	}
	for (int i = 0; i < MAX_CONNECTIONS + 8; i++)
		close(idle[i]);
	for (int i = 0; i < 10; i++)
		http_run(s);
	ask(s, "GET", "/metrics", "\r\n");
	assert_string_equal(body(), "calls 2\n");
	http_close(s);
}

static void test_addresses(void **state)
{
	static const char *const bad[] = {
		"",
		"9464",
		"localhost:9464",
		"127.0.0.1",
		"127.0.0.1:",
		"127.0.0.1:65536",
		"::1:9464",
		"[::1]",
		"[]:1",
		"[::1:9464",
		"127.0.0.1:9464x",
		"[127.0.0.1]:1",
		"[1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb]:1",
	};
	struct http_server *s = NULL;
	char reason[256];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		reason[0] = 0;
		if (http_open(bad[i], routes, NULL, &s, reason, sizeof(reason)) != -EINVAL)
			fail_msg("'%s' was taken", bad[i]);
		assert_non_null(strstr(reason, "is no address"));
	}
	assert_null(s);
	http_close(NULL);
}

static void test_port_in_use(void **state)
{
	int calls = 0;
	struct http_server *s = open_server(&calls), *second = NULL;
	char reason[256] = "";

	assert_int_equal(http_open(address, routes, NULL, &second, reason, sizeof(reason)),
			 -EADDRINUSE);
	assert_non_null(strstr(reason, address));
	assert_non_null(strstr(reason, "choose another port"));
	assert_null(second);
	http_close(s);
	/* And free again at once. */
	assert_int_equal(http_open(address, routes, &calls, &second, reason, sizeof(reason)), 0);
	http_close(second);
}

static void test_all_addresses(void **state)
{
	int calls = 0;
	struct http_server *s = NULL;
	char any[16], reason[256] = "";

	choose_port();
	snprintf(any, sizeof(any), ":%u", port);
	assert_int_equal(http_open(any, routes, &calls, &s, reason, sizeof(reason)), 0);
	ask(s, "GET", "/metrics", "\r\n"); /* over IPv4 */
	assert_string_equal(body(), "calls 1\n");
	http_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_get),
		cmocka_unit_test(test_head),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_endless_headers),
		cmocka_unit_test(test_idle_connections),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_port_in_use),
		cmocka_unit_test(test_all_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
