/* SPDX-License-Identifier: Apache-2.0 */
/* Opening files below a root that somebody else controls: a container's, or a --symfs folder. */
#ifndef SYMBOLIZER_ROOT_OPEN_H
#define SYMBOLIZER_ROOT_OPEN_H

/*
 * Opens <root>/<path> for reading. Links are followed as if `root` were "/", so that none leads
 * out; only a regular file is opened, so nothing blocks. The fd, or -errno: -ENOENT, -EPERM (no
 * regular file, or the kernel refuses such a look-up), ...
 */
int root_open(const char *root, const char *path);

#endif
