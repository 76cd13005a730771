/* SPDX-License-Identifier: Apache-2.0 */
/* memfdexec <program> [args]: copies the program into a memfd named "payload x" and runs that. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "burn.h"

extern char **environ;

int main(int argc, char **argv)
{
	int in, out;
	struct stat st;

	if (argc < 2)
		return 2;
	in = open(argv[1], O_RDONLY | O_CLOEXEC);
	out = memfd_create("payload x", MFD_CLOEXEC);
	if (in < 0 || out < 0 || fstat(in, &st))
		burn_die(argv[1]);
	for (off_t left = st.st_size; left > 0;) {
		ssize_t n = sendfile(out, in, NULL, (size_t)left);

		if (n <= 0)
			burn_die("sendfile");
		left -= n;
	}
	fexecve(out, argv + 1, environ);
	burn_die("fexecve");
}
