# SPDX-License-Identifier: Apache-2.0
# sonde: build, test and run. `make help` lists the targets.
#
# Everything that is made lands in build/: one directory per flavour for objects (rel, san,
# fuzz), gen/ for what is generated. V=1 shows commands, SAN=1 builds with sanitizers.

V ?= 0
Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' $(1) $(2);)
export PATH := $(PATH):/usr/sbin:/sbin

BUILD ?= build
GEN := $(BUILD)/gen
PREFIX ?= /usr/local
CC := $(if $(filter default,$(origin CC)),gcc,$(CC))

# First of all the Debian packages that the goals need; NO_SETUP=1 leaves that out.
GOALS := $(or $(MAKECMDGOALS),all)
GROUPS := build $(if $(filter test test-live soak unwind-table,$(GOALS)),test live) \
	$(if $(filter unit bpf_host fuzz lint oracle oracle_unwind oracle-names,$(GOALS)),test) \
	$(if $(filter test-stores,$(GOALS)),live stores) \
	$(if $(filter test-vm,$(GOALS)),vm) $(if $(filter test-fresh,$(GOALS)),fresh) \
	$(if $(filter bench bench-names bench-depth bench-sched,$(GOALS)),bench) $(if $(filter test-image,$(GOALS)),test live image)
ifneq ($(if $(NO_SETUP),,$(filter-out help clean format,$(GOALS))),)
ifneq ($(shell CLANG='$(CLANG)' tools/setup $(GROUPS) >&2 || echo failed),)
$(error packages are missing)
endif
endif

CLANG ?= $(firstword $(foreach c,clang-14 clang,$(if $(shell command -v $(c)),$(c))) clang-14)
BPFTOOL ?= bpftool

CFLAGS_BASE := -std=gnu17 -D_GNU_SOURCE -I. -I$(GEN) -g -Wall -Wextra -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wvla -Wno-unused-parameter -Wno-missing-field-initializers -MMD -MP
CFLAGS_rel := -O2 -fno-omit-frame-pointer
SANITIZE := -O1 -fno-omit-frame-pointer -fno-sanitize-recover=undefined -fsanitize=address,undefined
CFLAGS_san := $(SANITIZE)
CFLAGS_fuzz := $(SANITIZE),fuzzer-no-link
CC_rel = $(CC)
CC_san = $(CC)
CC_fuzz = $(CLANG)

# Layers, highest first: an archive each. main() is apart, so that tests can link all the rest.
LAYERS := prog proto symbolizer base
SRC_base := $(wildcard base/*.c)
SRC_symbolizer := $(wildcard symbolizer/*.c)
SRC_proto := $(wildcard proto/*.c)
# The _none.c take the places of http.c and transport.c in the static program: see there.
SRC_prog := $(filter-out agent/main.c agent/http_none.c agent/export/transport_none.c,$(wildcard agent/*.c agent/*/*.c cli/*.c))
# The definitions of the shared maps first: the linker wants them before their uses.
# The accounting is an object of its own: who does not account loads nothing of it.
SCHED_SRC := bpf/sched.bpf.c bpf/offcpu.bpf.c
BPF_SRC := bpf/maps.bpf.c $(filter-out bpf/maps.bpf.c $(SCHED_SRC),$(wildcard bpf/*.bpf.c))
SKELS := $(GEN)/sonde.skel.h $(GEN)/sched.skel.h
LIBS := -lzstd -lz -llzma -l:libiberty.a
STATIC_LIBS := -lbpf -lelf -lsqlite3 -lm -lyaml -ljansson -lseccomp $(LIBS)
PROG_LIBS := -lmicrohttpd -lcurl $(STATIC_LIBS)

.DELETE_ON_ERROR:
.SECONDARY:
.DEFAULT_GOAL := all

all: $(BUILD)/sonde$(if $(filter 1,$(SAN)),-san) $(GEN)/bpf.insns
static: $(BUILD)/sonde-static
san: $(BUILD)/sonde-san

# --- objects, once per flavour ---------------------------------------------------------------

# A file that holds the flags in use: objects are rebuilt when these change.
define remember
	@mkdir -p $(@D); echo '$(1)' | cmp -s - $@ || echo '$(1)' > $@
endef

define flavour
$(BUILD)/$(1)/flags: FORCE
	$$(call remember,$(CC_$(1)) $(CFLAGS_BASE) $(CFLAGS_$(1)) $(CFLAGS))

$(BUILD)/$(1)/%.o: %.c $(BUILD)/$(1)/flags
	@mkdir -p $$(@D)
	$$(call say,CC,$$<)$$(CC_$(1)) $$(CFLAGS_BASE) $$(CFLAGS_$(1)) $$(CFLAGS) -c -o $$@ $$<

$(foreach l,$(LAYERS),
$(BUILD)/$(1)/$(l).a: $(SRC_$(l):%.c=$(BUILD)/$(1)/%.o)
	$$(call say,AR,$$@)rm -f $$@ && ar rcs $$@ $$^
)

$(SRC_prog:%.c=$(BUILD)/$(1)/%.o): | $(SKELS)
endef
$(foreach f,rel san fuzz,$(eval $(call flavour,$(f))))

# --- BPF: one object per file and architecture, joined, then a skeleton ----------------------

BPF_FLAGS := -target bpf -O2 -g -mcpu=v3 -Wall -Wno-missing-declarations -MMD -MP
BPF_INC_x86_64 := -D__TARGET_ARCH_x86 -Ivmlinux/x86_64 -Ivmlinux -I.
BPF_INC_arm64 := -D__TARGET_ARCH_arm64 -Ivmlinux/arm64 -Ivmlinux -I.

define bpf_arch
$(GEN)/$(1)/flags: FORCE
	$$(call remember,$(CLANG) $(BPF_FLAGS) $(BPF_INC_$(1)))

$(GEN)/$(1)/%.bpf.o: bpf/%.bpf.c $(GEN)/$(1)/flags
	@mkdir -p $$(@D)
	$$(call say,BPF,"$$< ($(1))")$$(CLANG) $$(BPF_FLAGS) $$(BPF_INC_$(1)) -c -o $$@ $$<

$(GEN)/$(1)/sonde.o: $$(BPF_SRC:bpf/%.bpf.c=$(GEN)/$(1)/%.bpf.o)
	$$(call say,BPFLINK,$$@)$$(BPFTOOL) gen object $$@ $$^

$(GEN)/$(1)/sched.o: $$(SCHED_SRC:bpf/%.bpf.c=$(GEN)/$(1)/%.bpf.o)
	$$(call say,BPFLINK,$$@)$$(BPFTOOL) gen object $$@ $$^
endef
$(foreach a,x86_64 arm64,$(eval $(call bpf_arch,$(a))))

$(GEN)/%.skel.h: $(GEN)/x86_64/%.o
	$(call say,SKEL,$@)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

bpf: $(SKELS)
bpf-arm64: $(GEN)/arm64/sonde.o $(GEN)/arm64/sched.o

# What the verifier had to walk for each program; says nothing where BPF cannot be loaded.
$(BUILD)/tools/bpf_insns: tools/bpf_insns.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CFLAGS_BASE) $(CFLAGS_rel) -o $@ $< -lbpf -lelf -lz

$(BUILD)/tools/bpf_insns-static: tools/bpf_insns.c
	@mkdir -p $(@D)
	$(call say,CC,"$< (static)")$(CC) $(CFLAGS_BASE) $(CFLAGS_rel) -static -o $@ $< -lbpf -lelf -lz

$(GEN)/bpf.insns: $(GEN)/x86_64/sonde.o $(GEN)/x86_64/sched.o $(BUILD)/tools/bpf_insns
	$(Q)for object in $(filter %.o,$^); do $(BUILD)/tools/bpf_insns $$object; done | tee $@

# --- the program -----------------------------------------------------------------------------

$(BUILD)/sonde: $(BUILD)/rel/agent/main.o $(LAYERS:%=$(BUILD)/rel/%.a)
	$(call say,LD,$@)$(CC) $(CFLAGS_rel) $(LDFLAGS) -o $@ $^ $(PROG_LIBS)

$(BUILD)/sonde-static: $(BUILD)/rel/agent/main.o $(BUILD)/rel/agent/http_none.o $(BUILD)/rel/agent/export/transport_none.o $(LAYERS:%=$(BUILD)/rel/%.a)
	$(call say,LD,$@)$(CC) $(CFLAGS_rel) $(LDFLAGS) -static -o $@ $^ $(STATIC_LIBS)

$(BUILD)/sonde-san: $(BUILD)/san/agent/main.o $(LAYERS:%=$(BUILD)/san/%.a)
	$(call say,LD,$@)$(CC) $(CFLAGS_san) $(LDFLAGS) -o $@ $^ $(PROG_LIBS)

# --- test programs ---------------------------------------------------------------------------

# A test is linked with base and with the layers whose headers it includes (all of them if that
# is agent/ or cli/), so that it builds whatever state the other layers are in.
includes = $(patsubst tests/%.c,$(BUILD)/%,$(shell grep -lE '^.include "$(1)/' /dev/null $(2)))
archives = $(filter %.a,$^) $(if $(filter %/prog.a,$^),$(PROG_LIBS),$(LIBS)) -lm

# 1: flavour, 2: sources of tests
define link_layers
$(call includes,(agent|cli),$(2)): $(LAYERS:%=$(BUILD)/$(1)/%.a)
$(patsubst $(BUILD)/%,$(BUILD)/$(1)/tests/%.o,$(call includes,(agent|cli),$(2))): | $(SKELS)
$(call includes,proto,$(2)): $(BUILD)/$(1)/proto.a
$(call includes,symbolizer,$(2)): $(BUILD)/$(1)/symbolizer.a
$(2:tests/%.c=$(BUILD)/%): $(BUILD)/$(1)/base.a
endef

# Unit tests: tests/unit/test_<module>.c, each a cmocka program, with sanitizers.
UNIT := $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/test_*.c))
$(eval $(call link_layers,san,$(UNIT:%=tests/unit/%.c)))

$(BUILD)/unit/%: $(BUILD)/san/tests/unit/%.o
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CFLAGS_san) -o $@ $< $(archives) -lcmocka

unit: $(if $(T),$(BUILD)/unit/test_$(T),$(UNIT:%=$(BUILD)/unit/%))
	$(Q)for t in $(if $(T),test_$(T),$(UNIT)); do $(BUILD)/unit/$$t || exit 1; done

# Tests of BPF code compiled for the host: tests/bpf_host/test_<x>.c, linked with the other
# files there, the stub helpers. By clang, since gcc knows no CO-RE builtins.
HOST := $(patsubst tests/bpf_host/%.c,%,$(wildcard tests/bpf_host/test_*.c))
HOST_STUBS := $(filter-out $(HOST:%=tests/bpf_host/%.c),$(wildcard tests/bpf_host/*.c))
HOST_FLAGS := -std=gnu17 -D_GNU_SOURCE -g -Wall -MMD -MP $(SANITIZE) -Itests/bpf_host $(BPF_INC_x86_64)

$(BUILD)/bpf_host/%.o: tests/bpf_host/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CLANG) $(HOST_FLAGS) -c -o $@ $<

$(BUILD)/bpf_host/test_%: $(BUILD)/bpf_host/test_%.o $(HOST_STUBS:tests/%.c=$(BUILD)/%.o) $(BUILD)/san/base.a
	$(call say,LD,$@)$(CLANG) $(SANITIZE) -o $@ $^ -lcmocka

bpf_host: $(if $(T),$(BUILD)/bpf_host/test_$(T),$(HOST:%=$(BUILD)/bpf_host/%))
	$(Q)for t in $(if $(T),test_$(T),$(HOST)); do $(BUILD)/bpf_host/$$t || exit 1; done

# Fuzz targets: tests/fuzz/fuzz_<name>.c.
FUZZ := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_SECONDS ?= 60
SOAK_SECONDS ?= 1800
UNWIND_SECONDS ?= 60
$(eval $(call link_layers,fuzz,$(FUZZ:%=tests/fuzz/%.c)))

$(BUILD)/fuzz/fuzz_%: $(BUILD)/fuzz/tests/fuzz/fuzz_%.o
	$(call say,LD,$@)$(CLANG) $(SANITIZE),fuzzer -o $@ $< $(archives)

fuzz: $(if $(F),$(BUILD)/fuzz/fuzz_$(F),$(FUZZ:%=$(BUILD)/fuzz/%))
	$(Q)FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/run.sh $(F)

# Workloads with a known truth, for live tests, VMs and benchmarks.
include $(wildcard tests/workloads/*.mk tests/oracle/*.mk tests/oracle_names/*.mk)
workloads: $(WORKLOADS)

$(BUILD)/vm/%: tests/vm/guest/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) -O2 -g -fno-omit-frame-pointer -Wall -static -o $@ $<

# What a node sends, by a model: requests and bytes.
$(BUILD)/stores/volume: tests/stores/volume.c $(LAYERS:%=$(BUILD)/rel/%.a)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CFLAGS_BASE) $(CFLAGS_rel) -o $@ $< $(filter %.a,$^) $(PROG_LIBS)

# --- suites ----------------------------------------------------------------------------------

TEST_BINS := $(UNIT:%=$(BUILD)/unit/%) $(HOST:%=$(BUILD)/bpf_host/%) $(FUZZ:%=$(BUILD)/fuzz/%)

lint: $(SKELS) $(BUILD)/tools/bpf_insns
	$(Q)CLANG=$(CLANG) tests/run lint
test: all san bpf-arm64 workloads oracle $(TEST_BINS)
	$(Q)CLANG=$(CLANG) FUZZ_SECONDS=10 tests/run lint unit bpf_host golden fuzz live
test-live: all san workloads oracle
	$(Q)tests/run live
test-stores: all workloads
	$(Q)tests/run stores
volume: $(BUILD)/stores/volume
	$(Q)$<
test-vm: static $(addprefix $(BUILD)/workloads/,split-static deep_small-static deep_large-static) $(BUILD)/vm/in_kernel $(BUILD)/vm/limited \
	$(BUILD)/tools/bpf_insns-static \
	$(BUILD)/tools/bpf_insns
	$(Q)tests/run vm
test-vm-soak:
	$(Q)VM_SOAK_SUITES="bullseye sid" VM_SUITES="bullseye sid" VM_ONLY=agent_soak $(MAKE) test-vm
test-fresh:
	$(Q)tests/run fresh
test-image: all workloads
	$(Q)tests/run image
bench: all workloads
	$(Q)tests/bench/run.sh
# Names only: perf report, llvm-symbolizer and sonde on the same recording.
$(BUILD)/tools/lookups: tests/bench/lookups.c $(BUILD)/rel/symbolizer.a $(BUILD)/rel/base.a
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CFLAGS_BASE) $(CFLAGS_rel) -o $@ $^ $(LIBS)
bench-names: all workloads $(BUILD)/tools/lookups
	$(Q)python3 -B tests/bench/names.py
bench-depth: all workloads
	$(Q)python3 -B tests/bench/depth.py
bench-sched: all $(BUILD)/workloads/schedmix
	$(Q)python3 -B tests/bench/sched.py
soak: all workloads
	$(Q)SOAK_SECONDS=$(SOAK_SECONDS) python3 tests/soak/soak.py
unwind-table: all
	$(Q)UNWIND_SECONDS=$(UNWIND_SECONDS) tests/unwind_table/run.py --why $(P)

# --- the rest --------------------------------------------------------------------------------

run: all
	$(BUILD)/sonde record -a -d 10 -o $(BUILD)/run.pb.gz
	$(BUILD)/sonde report $(BUILD)/run.pb.gz | head -n 40

# The manual page comes from the tables of commands and options.
$(BUILD)/sonde.1: $(BUILD)/sonde
	$(call say,MAN,$@)$(BUILD)/sonde man > $@

install: all $(BUILD)/sonde.1
	install -D -m 755 $(BUILD)/sonde $(DESTDIR)$(PREFIX)/bin/sonde
	install -D -m 644 $(BUILD)/sonde.1 $(DESTDIR)$(PREFIX)/share/man/man1/sonde.1

format:
	clang-format-14 -i $(filter-out vmlinux/%,$(wildcard *.[ch] */*.[ch] */*/*.[ch]))

define HELP
make                 build/sonde (SAN=1: build/sonde-san), V=1 shows the commands
make static          build/sonde-static: one static binary, runs on any node
make run             record this machine for 10 s and show its hottest functions (root)
make test [T=text]   everything but VMs; T: only the test programs with this text in their name
make unit T=map      one unit test, its whole output; likewise bpf_host T=name
make fuzz F=parse    one fuzz target, FUZZ_SECONDS=60
make test-live       on this machine's kernel (root)
make test-vm-soak    the agent for two minutes beside a load on 5.10 and 7.2
make test-stores     delivery into real stores and strict peers, and under faults (root, Go)
make volume          requests and bytes that a node sends, by a model
make test-vm         on Debian's 5.10, 6.1, 6.12 and 7.2 kernels under QEMU
make test-fresh      make run and make test in a fresh Debian 12 (root)
make test-image      the container image and the manifest, by runc and helm (root)
make lint            layering, sizes, licences; each header by itself
make bench           cost beside other profilers (root)
make bench-names     time to names beside perf report and llvm-symbolizer (root)
make bench-depth     cost of a sample at 10, 30 and 100 frames (root)
make bench-sched     cost of scheduler accounting at its worst case, beside others (root)
make soak            the agent under a mixed load, SOAK_SECONDS=1800 (root)
make unwind-table    whole stacks of real programs under load, P="git_gc go", UNWIND_SECONDS=60 (root)
make oracle-names    names at random addresses beside readelf, objdump and Go's tools
make oracle_unwind   unwind tables of all files in /usr beside libdw's
make install         DESTDIR= PREFIX=/usr/local: program and man page
make clean
endef
help:
	@: $(info $(HELP))

clean:
	rm -rf $(BUILD)

FORCE:
-include $(shell find $(BUILD) \( -path $(BUILD)/fresh -o -path $(BUILD)/image -o -path $(BUILD)/vm/root \) -prune -o -type f -name '*.d' -print 2>/dev/null)
.PHONY: all static san bpf bpf-arm64 unit bpf_host fuzz workloads lint test test-live test-stores volume test-vm test-vm-soak \
	test-fresh test-image bench bench-names bench-depth bench-sched soak unwind-table run install format help clean FORCE
