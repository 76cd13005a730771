/* SPDX-License-Identifier: Apache-2.0 */
/* The version of the program. */
#ifndef AGENT_VERSION_H
#define AGENT_VERSION_H

#define SONDE_VERSION "0.1.0"

#endif
