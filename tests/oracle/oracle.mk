# SPDX-License-Identifier: Apache-2.0
# The oracle: stacks captured once, unwound by sonde's walker and by libdw. See README.md here.
# Included by the Makefile. Needs libdw.

ORACLE := $(BUILD)/oracle
ORACLE_SRC := tests/oracle
ORACLE_CFLAGS := -std=gnu17 -D_GNU_SOURCE -O2 -g -Wall -MMD -MP -I. -I$(ORACLE_SRC)
# BPF code and its stubs, without sanitizers: there are many stacks.
ORACLE_BPF := $(CLANG) $(ORACLE_CFLAGS) -Itests/bpf_host $(BPF_INC_x86_64)
ORACLE_OBJS := $(addprefix $(ORACLE)/,compare.o dwarf.o walk.o unwind_tables.o \
	$(notdir $(HOST_STUBS:.c=.o)))

$(ORACLE)/compare.o $(ORACLE)/dwarf.o: $(ORACLE)/%.o: $(ORACLE_SRC)/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ORACLE_CFLAGS) -Wextra -Wno-unused-parameter -c -o $@ $<

$(ORACLE)/walk.o: $(ORACLE_SRC)/walk.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(ORACLE_BPF) -c -o $@ $<

$(addprefix $(ORACLE)/,$(notdir $(HOST_STUBS:.c=.o))): $(ORACLE)/%.o: tests/bpf_host/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(ORACLE_BPF) -c -o $@ $<

# The agent's loader, writing to the simulated maps.
$(ORACLE)/unwind_tables.o: agent/collect/unwind_tables.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ORACLE_CFLAGS) -Dbpf_map_update_elem=oracle_map_update \
		-Dbpf_map_delete_elem=oracle_map_delete -c -o $@ $<

$(ORACLE)/compare: $(ORACLE_OBJS) $(addprefix $(BUILD)/rel/agent/collect/,extents.o rule_set.o) \
	$(BUILD)/rel/symbolizer.a $(BUILD)/rel/base.a
	$(call say,LD,$@)$(CC) -o $@ $^ -ldw -lelf -lcmocka $(LIBS)

$(ORACLE)/capture: $(ORACLE_SRC)/capture.c $(ORACLE_SRC)/capture.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(ORACLE_CFLAGS) -Wextra -o $@ $<

oracle: $(ORACLE)/compare $(ORACLE)/capture
.PHONY: oracle
