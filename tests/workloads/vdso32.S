/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A 32-bit process that is always on its way through its own vDSO: calls __kernel_vsyscall,
 * whose address the auxiliary vector tells, until it is killed. Needs no 32-bit libraries.
 */
#define AT_SYSINFO 32
#define NR_exit 1
#define NR_getppid 64

	.text
	.globl _start
	.type _start, @function
_start:
	mov (%esp), %eax
	lea 8(%esp,%eax,4), %esi /* the environment */
1:	lodsl
	test %eax, %eax
	jnz 1b
2:	lodsl /* a type, and its value */
	mov %eax, %edx
	lodsl
	cmp $AT_SYSINFO, %edx
	je 3f
	test %edx, %edx
	jnz 2b
	mov $NR_exit, %eax
	mov $1, %ebx
	int $0x80
3:	mov %eax, %edi
4:	mov $NR_getppid, %eax
	call *%edi
	jmp 4b
	.size _start, . - _start

	.section .note.GNU-stack, "", @progbits
