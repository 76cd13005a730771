// SPDX-License-Identifier: Apache-2.0

// Package body is what the programs have in common: generics, methods, closures, a deferred call, an
// inlined function.
package body

import (
	"fmt"
	"os"
	"strings"
)

type shape interface{ area() float64 }
type sq struct{ s float64 }

func (q *sq) area() float64 { return q.s * q.s }

//go:noinline
func Map[T, U any](in []T, f func(T) U) []U {
	var out []U
	for _, v := range in {
		out = append(out, f(v))
	}
	return out
}

func inlined(x int) int { return x*3 + len(os.Args) }

//go:noinline
func outer(x int) int {
	s := 0
	for i := 0; i < x; i++ {
		s += inlined(i)
	}
	return s
}

// Run does it all.
func Run(n int) {
	var a shape = &sq{2}
	r := Map([]int{1, 2, 3}, func(i int) string { return strings.Repeat("x", i) })
	fmt.Println(r, a.area(), outer(n))
	defer func() { recover() }()
}
