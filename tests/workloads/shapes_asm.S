/* SPDX-License-Identifier: Apache-2.0 */
/* Functions without unwind data, x86-64: see shapes.h (U-05). */
	.text

	.globl asm_framed
	.type asm_framed, @function
asm_framed:
	push %rbp
	mov %rsp, %rbp
	mov %rdi, %rax
	mov %rsi, %rdi
	call *%rax
	pop %rbp
	ret
	.size asm_framed, . - asm_framed

	.globl asm_bare
	.type asm_bare, @function
asm_bare:
	sub $8, %rsp
	mov %rdi, %rax
	mov %rsi, %rdi
	call *%rax
	add $8, %rsp
	ret
	.size asm_bare, . - asm_bare

	.section .note.GNU-stack, "", @progbits
