/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to systemd (sd_notify(3)), without libsystemd; does nothing without NOTIFY_SOCKET. */
#ifndef AGENT_NOTIFY_H
#define AGENT_NOTIFY_H

#include <stdint.h>

/* "READY=1", "STOPPING=1", "WATCHDOG=1", "STATUS=..."; 0, or -errno. */
int notify_send(const char *message);

/* Half of WatchdogSec in ns if systemd watches us (WATCHDOG_USEC, WATCHDOG_PID), else 0. */
uint64_t notify_watchdog_interval(void);

#endif
