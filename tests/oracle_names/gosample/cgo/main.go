// SPDX-License-Identifier: Apache-2.0
//
// For the oracle of names: a program with C.
package main

/*
int cfun(int x) { volatile int y = x; for (int i = 0; i < 10; i++) y += i; return y; }
*/
import "C"

import "sample/body"

func main() {
	body.Run(int(C.cfun(10)))
}
