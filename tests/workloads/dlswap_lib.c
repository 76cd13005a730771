/* SPDX-License-Identifier: Apache-2.0 */
/* One function, named by -DSWAP_FN: built twice, with the same layout (case S-18). */
#include "burn.h"

DEFINE_BURN(SWAP_FN)
