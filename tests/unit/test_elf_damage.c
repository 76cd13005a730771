/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A good ELF file with one field changed, or cut somewhere: no crash (the tests run with
 * sanitizers), little memory, and the names that are still found are the right ones.
 */
#include "elf_lab.h"
#include "symbolizer/elf_file.h"
#include "symbolizer/symbolizer.h"

enum { ANY = 1, FULL = 5 }; /* at least so many marks named; errors are negative */

struct image {
	struct buf b;
	Elf64_Ehdr *ehdr;
	Elf64_Phdr *code; /* the executable PT_LOAD */
	Elf64_Shdr *symtab;
	Elf64_Shdr *strtab;
};

static void write_program(void)
{
	lab_text("program.c", LAB_MARK
		 "#define F(name) __attribute__((noinline)) \\\n"
		 "	int name(int x) { MARK(name); return x + 1; }\n"
		 "F(one) F(two) F(three)\nstatic F(four)\nint main(int c, char **v) {\n"
		 "	MARK(main); return one(two(three(four(c)))); }\n");
	lab_run("gcc -O1 -rdynamic -o program program.c");
}

static void open_image(struct image *im)
{
	Elf64_Shdr *sections;
	Elf64_Phdr *segments;

	im->b = lab_read("program");
	im->ehdr = (Elf64_Ehdr *)im->b.data;
	segments = (Elf64_Phdr *)(im->b.data + im->ehdr->e_phoff);
	sections = (Elf64_Shdr *)(im->b.data + im->ehdr->e_shoff);
	for (size_t i = 0; i < im->ehdr->e_phnum; i++) {
		if (segments[i].p_type == PT_LOAD && (segments[i].p_flags & PF_X))
			im->code = &segments[i];
	}
	for (size_t i = 0; i < im->ehdr->e_shnum; i++) {
		if (sections[i].sh_type == SHT_SYMTAB)
			im->symtab = &sections[i];
	}
	im->strtab = &sections[im->symtab->sh_link];
}

/* How many marks have their name; a wrong one fails. */
static int named_marks(const char *path, struct sym_file *file)
{
	struct buf b = lab_read("program");
	int count = 0;

	for (size_t off = 0; off + 16 < b.len; off++) {
		char name[32];
		struct sym_hit hit;
		uint64_t vaddr;

		if (memcmp(b.data + off, "MARK:", 5) != 0 || b.data[off + 5] < 'a' ||
		    sscanf((const char *)b.data + off, "MARK:%31[a-z]!", name) != 1 ||
		    !sym_file_vaddr(file, off, &vaddr) ||
		    sym_file_find(file, vaddr, &hit) != SYM_OK)
			continue;
		if (strcmp(hit.name, name) != 0)
			fail_msg("%s: %s is named %s", path, name, hit.name);
		count++;
	}
	buf_fini(&b);
	return count;
}

/* Loads from memory (where sanitizers see each byte out of bounds) and from the file. */
static int load_both(const char *name, const struct buf *b)
{
	struct sym_file *file = NULL, *same = NULL;
	uint8_t *exact = malloc(b->len ? b->len : 1);
	int err, fd, count;

	if (b->len)
		memcpy(exact, b->data, b->len);
	err = sym_file_load_image(exact, b->len, NULL, &file);
	free(exact);
	lab_write("mutant", b->data, b->len);
	fd = open("mutant", O_RDONLY | O_CLOEXEC);
	assert_int_equal(sym_file_load(fd, NULL, &same), err);
	close(fd);
	if (err)
		return err;
	count = named_marks(name, file);
	assert_int_equal(named_marks(name, same), count);
	assert_true(sym_file_bytes(file) < 64 * 1024);
	assert_string_equal(sym_file_build_id(file), sym_file_build_id(same));
	sym_file_free(file);
	sym_file_free(same);
	return count;
}

#define MUTATION(name, expected, ...) \
	static void mutate_##name(struct image *im) { __VA_ARGS__; }
#define MUTATIONS(M) \
	M(nothing, FULL, (void)im) \
	M(symtab_size_huge, ANY, im->symtab->sh_size = ~0ULL) \
	M(symtab_size_past_end, ANY, im->symtab->sh_size = im->b.len) \
	M(symtab_offset_huge, ANY, im->symtab->sh_offset = ~0ULL - 100) \
	M(symtab_entsize_zero, ANY, im->symtab->sh_entsize = 0) \
	M(symtab_link_to_itself, ANY, im->symtab->sh_link = (uint32_t)(im->symtab - \
		(Elf64_Shdr *)(im->b.data + im->ehdr->e_shoff))) \
	M(symtab_link_out_of_range, ANY, im->symtab->sh_link = 0xffffffff) \
	M(symtab_compressed, ANY, im->symtab->sh_flags |= SHF_COMPRESSED) \
	M(strtab_compressed, ANY, im->strtab->sh_flags |= SHF_COMPRESSED) \
	M(strtab_size_one, ANY, im->strtab->sh_size = 1) \
	M(strtab_size_huge, ANY, im->strtab->sh_size = ~0ULL) \
	M(strtab_nobits, ANY, im->strtab->sh_type = SHT_NOBITS) \
	M(shentsize_zero, ANY, im->ehdr->e_shentsize = 0) \
	M(shentsize_max, ANY, im->ehdr->e_shentsize = 65535) \
	M(shnum_zero, ANY, im->ehdr->e_shnum = 0) \
	M(shnum_max, ANY, im->ehdr->e_shnum = 65535) \
	M(shoff_huge, ANY, im->ehdr->e_shoff = ~0ULL - 3) \
	M(shstrndx_out_of_range, FULL, im->ehdr->e_shstrndx = 60000) \
	M(memsz_huge, FULL, im->code->p_memsz = ~0ULL) \
	M(filesz_huge, FULL, im->code->p_filesz = ~0ULL) \
	M(vaddr_huge, 0, im->code->p_vaddr = ~0ULL - 4096) \
	M(offset_huge, 0, im->code->p_offset = ~0ULL) \
	M(phnum_max, -EBADMSG, im->ehdr->e_phnum = 65535) \
	M(phnum_zero, 0, im->ehdr->e_phnum = 0) \
	M(phentsize_zero, -EBADMSG, im->ehdr->e_phentsize = 0) \
	M(phoff_huge, -EBADMSG, im->ehdr->e_phoff = ~0ULL - 8) \
	M(class_32, 0, im->ehdr->e_ident[EI_CLASS] = ELFCLASS32) \
	M(big_endian, -ENOEXEC, im->ehdr->e_ident[EI_DATA] = ELFDATA2MSB) \
	M(relocatable, -ENOEXEC, im->ehdr->e_type = ET_REL) \
	M(bad_magic, -ENOEXEC, im->ehdr->e_ident[1] = 'e') \
	M(cut_after_magic, -ENOEXEC, im->b.len = 4) \
	M(cut_in_header, -EBADMSG, im->b.len = 40) \
	M(cut_at_segments, -EBADMSG, im->b.len = im->ehdr->e_phoff + 8) \
	M(cut_at_code, 0, im->b.len = im->code->p_offset) \
	M(cut_at_symtab, ANY, im->b.len = im->symtab->sh_offset + 8) \
	M(cut_at_strtab, ANY, im->b.len = im->strtab->sh_offset + 8) \
	M(cut_at_sections, ANY, im->b.len = im->ehdr->e_shoff + 8) \
	M(cut_in_sections, ANY, im->b.len -= 8)

MUTATIONS(MUTATION)

static const struct mutation {
	const char *name;
	int expected;
	void (*mutate)(struct image *im);
} mutations[] = {
#define ROW(name, expected, ...) { #name, expected, mutate_##name },
	MUTATIONS(ROW)
};

enum { MUTATION_COUNT = sizeof(mutations) / sizeof(mutations[0]) };

static void mutation_is_survived(void **state)
{
	const struct mutation *m = *state;
	struct image im;
	int got;

	write_program();
	open_image(&im);
	m->mutate(&im);
	got = load_both(m->name, &im.b);
	buf_fini(&im.b);
	if (m->expected < 0)
		assert_int_equal(got, m->expected);
	else
		assert_true(got >= m->expected);
}

/* Every 16-bit field of headers and tables set to extremes in turn. */
static void fields_at_extremes(void **state)
{
	static const uint16_t values[] = { 0, 1, 0x7fff, 0x8000, 0xffff };
	struct sym_file *file;
	struct image im;
	size_t loaded = 0;

	write_program();
	open_image(&im);
	for (size_t off = 4; off < 1024; off += 2) {
		for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
			uint16_t old;

			memcpy(&old, im.b.data + off, 2);
			memcpy(im.b.data + off, &values[i], 2);
			if (sym_file_load_image(im.b.data, im.b.len, NULL, &file) == 0) {
				loaded++;
				sym_file_free(file);
			}
			memcpy(im.b.data + off, &old, 2);
		}
	}
	assert_true(loaded > 1000);
	buf_fini(&im.b);
}

/* A file that takes no space and claims four gigabytes of symbols, then of strings. */
static void sparse_giant(void **state)
{
	struct sym_file *file = NULL;
	struct sym_hit hit;
	struct image im;
	int fd;

	for (int strings = 0; strings < 2; strings++) {
		Elf64_Shdr *grown;

		write_program();
		open_image(&im);
		grown = strings ? im.strtab : im.symtab;
		grown->sh_offset = 0;
		grown->sh_size = 4ULL << 30;
		lab_write("giant", im.b.data, im.b.len);
		buf_fini(&im.b);
		assert_int_equal(truncate("giant", 4LL << 30), 0);
		fd = open("giant", O_RDONLY | O_CLOEXEC);
		assert_int_equal(sym_file_load(fd, NULL, &file), 0);
		assert_int_equal(sym_file_find(file, 1, &hit), SYM_NO_MEMORY);
		assert_true(sym_file_bytes(file) < 64 * 1024);
		sym_file_free(file);
		file = NULL;
		close(fd);
	}
}

/* Why the address 0 has no name when `path` is loaded within the bound. */
static enum sym_reason load_within(const char *path, size_t max_bytes)
{
	struct sym_file_options options = { .max_bytes = max_bytes };
	struct sym_file *file = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	enum sym_reason reason;
	struct sym_hit hit;

	assert_int_equal(sym_file_load(fd, &options, &file), 0);
	close(fd);
	assert_true(sym_file_bytes(file) <= max_bytes + 4096);
	reason = sym_file_find(file, 0, &hit);
	sym_file_free(file);
	return reason;
}

/* Long names, of their own or one for all: the bound holds, whatever the file makes of it. */
static void long_names(void **state)
{
	struct image im;
	Elf64_Sym *symbols;

	lab_run("(printf '.text\\n'; for i in $(seq 300); do printf '.globl f%%d_%%08000d\\n"
		"f%%d_%%08000d: nop\\n' $i 0 $i 0; done) >long.s"
		" && gcc -shared -Wl,-z,noexecstack -o program long.s");
	assert_int_equal(load_within("program", 1024 * 1024), SYM_NO_MEMORY);
	assert_int_equal(load_within("program", 16 * 1024 * 1024), SYM_NOT_COVERED);

	open_image(&im);
	symbols = (Elf64_Sym *)(im.b.data + im.symtab->sh_offset);
	for (size_t i = 0; i < im.symtab->sh_size / sizeof(*symbols); i++)
		symbols[i].st_name = symbols[im.symtab->sh_info].st_name;
	for (size_t i = 0; i < im.ehdr->e_shnum; i++) {
		Elf64_Shdr *s = (Elf64_Shdr *)(im.b.data + im.ehdr->e_shoff) + i;

		if (s->sh_type == SHT_DYNSYM)
			s->sh_entsize = 0;
	}
	lab_write("shared_name", im.b.data, im.b.len);
	buf_fini(&im.b);
	assert_int_equal(load_within("shared_name", 1024 * 1024), SYM_NO_MEMORY);
}

static void no_regular_file(void **state)
{
	struct sym_file *file = NULL;
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	assert_int_equal(sym_file_load(fd, NULL, &file), -ENOEXEC);
	close(fd);
	fd = open(".", O_RDONLY | O_CLOEXEC);
	assert_int_equal(sym_file_load(fd, NULL, &file), -ENOEXEC);
	close(fd);
	assert_int_equal(sym_file_load(-1, NULL, &file), -EBADF);
	lab_text("empty", "");
	fd = open("empty", O_RDONLY | O_CLOEXEC);
	assert_int_equal(sym_file_load(fd, NULL, &file), -ENOEXEC);
	close(fd);
	assert_null(file);
	sym_file_free(NULL);
}

/* The file shrinks between the look at its size and the reading. */
static void source_ends_early(void **state)
{
	struct elf_source source;
	uint8_t bytes[8];
	int fd;

	lab_text("short", "12345678");
	fd = open("short", O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_source_fd(fd, &source), 0);
	assert_int_equal(elf_source_read(&source, 0, bytes, 8), 0);
	assert_int_equal(elf_source_read(&source, 1, bytes, 8), -EBADMSG);
	assert_int_equal(elf_source_read(&source, ~0ULL, bytes, 8), -EBADMSG);
	assert_int_equal(truncate("short", 4), 0);
	assert_int_equal(elf_source_read(&source, 0, bytes, 8), -EBADMSG);
	close(fd);
}

int main(void)
{
	struct CMUnitTest tests[MUTATION_COUNT + 5] = {
		cmocka_unit_test(fields_at_extremes),
		cmocka_unit_test(sparse_giant),
		cmocka_unit_test(long_names),
		cmocka_unit_test(no_regular_file),
		cmocka_unit_test(source_ends_early),
	};

	for (size_t i = 0; i < MUTATION_COUNT; i++)
		tests[5 + i] = (struct CMUnitTest){ .name = mutations[i].name,
						    .test_func = mutation_is_survived,
						    .initial_state = (void *)&mutations[i] };
	return cmocka_run_group_tests_name("elf_damage", tests, lab_open, lab_close);
}
