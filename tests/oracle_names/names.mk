# SPDX-License-Identifier: Apache-2.0
# The oracle of names: sonde's symbolizer against nm, objdump, llvm-symbolizer and Go's tools.

$(BUILD)/oracle_names/names: $(BUILD)/rel/tests/oracle_names/names.o $(BUILD)/rel/symbolizer.a $(BUILD)/rel/base.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CFLAGS_rel) -o $@ $^ $(LIBS)

WORKLOADS += $(BUILD)/oracle_names/names

oracle-names: $(BUILD)/oracle_names/names
	$(Q)tests/oracle_names/run.py
.PHONY: oracle-names
