/* SPDX-License-Identifier: Apache-2.0 */
/* The datagrams of sd_notify(3); see notify.h. */
#include "agent/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/parse.h"

/* "/path", or "@name" for an abstract address, which has a NUL first and none at its end. */
static int make_address(const char *name, struct sockaddr_un *address, socklen_t *ret_size)
{
	size_t len = strlen(name);

	if ((name[0] != '/' && name[0] != '@') || !name[1] || len >= sizeof(address->sun_path))
		return -EINVAL;
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(address->sun_path, name, len);
	if (name[0] == '@')
		address->sun_path[0] = 0;
	*ret_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	return 0;
}

int notify_send(const char *message)
{
	const char *name = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address;
	socklen_t size;
	int err, fd;

	if (!name || !name[0])
		return 0;
	err = make_address(name, &address, &size);
	if (err)
		return err;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* Never waits for a service manager that does not read. */
	if (sendto(fd, message, strlen(message), MSG_NOSIGNAL | MSG_DONTWAIT,
		   (struct sockaddr *)&address, size) < 0)
		err = -errno;
	close(fd);
	return err;
}

uint64_t notify_watchdog_interval(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	uint64_t us, watched;

	if (!usec || parse_u64(usec, 10, &us) || us == 0 || us > UINT64_MAX / 1000)
		return 0;
	if (pid && (parse_u64(pid, 10, &watched) || watched != (uint64_t)getpid()))
		return 0;
	return us * 1000 / 2;
}
