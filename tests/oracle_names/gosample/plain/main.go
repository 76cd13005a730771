// SPDX-License-Identifier: Apache-2.0
//
// For the oracle of names: a program without C.
package main

import "sample/body"

func main() {
	body.Run(10)
}
