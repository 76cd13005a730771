/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Position-independent machine code to copy elsewhere: the bytes of one burning function, in a
 * section of its own so that its extent is known. And the smallest ELF file that holds it.
 */
#ifndef WORKLOADS_TEMPLATE_H
#define WORKLOADS_TEMPLATE_H

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "burn.h"

extern const uint8_t __start_burn_code[], __stop_burn_code[];

BURN_APART __attribute__((used, section("burn_code"))) static uint64_t burn_template(uint64_t iters)
{
	uint64_t x = iters | 1;

	KEEP_FRAME();
	for (uint64_t i = 0; i < iters; i++) {
		x *= 0x9e3779b97f4a7c15ULL;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

static inline size_t template_size(void)
{
	return (size_t)(__stop_burn_code - __start_burn_code);
}

#if defined(__x86_64__)
#define TEMPLATE_MACHINE EM_X86_64
#else
#define TEMPLATE_MACHINE EM_AARCH64
#endif

enum { TINY_CODE_OFF = 0x1000, TINY_FILE_BYTES = 0x2000, TINY_NOTE_OFF = 0x200 };

static inline void tiny_section(Elf64_Shdr *s, uint32_t name, uint32_t type, uint64_t off,
				uint64_t size)
{
	s->sh_name = name;
	s->sh_type = type;
	s->sh_offset = off;
	s->sh_size = size;
	s->sh_addralign = 1;
}

static inline void tiny_build_id(uint8_t *file, unsigned int number)
{
	Elf64_Nhdr *note = (Elf64_Nhdr *)(file + TINY_NOTE_OFF);

	note->n_namesz = 4;
	note->n_descsz = 20;
	note->n_type = NT_GNU_BUILD_ID;
	memcpy(note + 1, "GNU", 4);
	memset((uint8_t *)(note + 1) + 4, 0xc4, 20);
	memcpy((uint8_t *)(note + 1) + 4, &number, sizeof(number));
}

static inline void tiny_headers(uint8_t *file)
{
	Elf64_Ehdr *eh = (Elf64_Ehdr *)file;
	Elf64_Phdr *ph = (Elf64_Phdr *)(file + 0x40);
	Elf64_Shdr *sh = (Elf64_Shdr *)(file + 0x400);

	*eh = (Elf64_Ehdr){ .e_type = ET_DYN,
			    .e_machine = TEMPLATE_MACHINE,
			    .e_version = EV_CURRENT,
			    .e_phoff = 0x40,
			    .e_shoff = 0x400,
			    .e_ehsize = sizeof(*eh),
			    .e_phentsize = sizeof(*ph),
			    .e_phnum = 2,
			    .e_shentsize = sizeof(*sh),
			    .e_shnum = 5,
			    .e_shstrndx = 3 };
	memcpy(eh->e_ident,
	       (const uint8_t[]){ 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT }, 7);
	ph[0] = (Elf64_Phdr){ .p_type = PT_LOAD,
			      .p_flags = PF_R | PF_X,
			      .p_filesz = TINY_FILE_BYTES,
			      .p_memsz = TINY_FILE_BYTES,
			      .p_align = 0x1000 };
	ph[1] = (Elf64_Phdr){ .p_type = PT_NOTE,
			      .p_flags = PF_R,
			      .p_offset = TINY_NOTE_OFF,
			      .p_vaddr = TINY_NOTE_OFF,
			      .p_filesz = 36,
			      .p_memsz = 36,
			      .p_align = 4 };
	tiny_section(&sh[1], 1, SHT_PROGBITS, TINY_CODE_OFF, template_size());
	sh[1].sh_addr = TINY_CODE_OFF;
	sh[1].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	tiny_section(&sh[2], 7, SHT_SYMTAB, 0x300, 2 * sizeof(Elf64_Sym));
	sh[2].sh_link = 3;
	sh[2].sh_info = 1;
	sh[2].sh_entsize = sizeof(Elf64_Sym);
	sh[2].sh_addralign = 8;
	tiny_section(&sh[3], 15, SHT_STRTAB, 0x280, 0x80);
	tiny_section(&sh[4], 23, SHT_NOTE, TINY_NOTE_OFF, 36);
	sh[4].sh_addr = TINY_NOTE_OFF;
	sh[4].sh_flags = SHF_ALLOC;
}

/*
 * Writes a shared object whose one function `name` lies at TINY_CODE_OFF, in the file as in memory:
 * all such files look the same but for the name and the build-id.
 */
static inline void tiny_elf_write(const char *path, const char *name, unsigned int number)
{
	static const char shstr[] = "\0.text\0.symtab\0.strtab\0.note.gnu.build-id";
	static uint8_t file[TINY_FILE_BYTES];
	Elf64_Sym *sym = (Elf64_Sym *)(file + 0x300);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	memset(file, 0, sizeof(file));
	memcpy(file + TINY_CODE_OFF, __start_burn_code, template_size());
	memcpy(file + 0x280, shstr, sizeof(shstr));
	strcpy((char *)file + 0x2c1, name);
	tiny_build_id(file, number);
	sym[1].st_name = 0x41;
	sym[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
	sym[1].st_shndx = 1;
	sym[1].st_value = TINY_CODE_OFF;
	sym[1].st_size = template_size();
	tiny_headers(file);
	if (fd < 0 || write(fd, file, sizeof(file)) != (ssize_t)sizeof(file))
		burn_die(path);
	close(fd);
}

#endif
