# The comparison of unwind tables with libdw's, over every ELF file of /usr: minutes. Needs libdw.

$(BUILD)/tools/oracle_unwind: tests/live/oracle_unwind.c $(BUILD)/rel/symbolizer.a $(BUILD)/rel/base.a
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CFLAGS_BASE) $(CFLAGS_rel) -o $@ $^ -ldw -lelf $(LIBS)

oracle_unwind: $(BUILD)/tools/oracle_unwind
	$(Q)find /usr -type f | $< -
.PHONY: oracle_unwind
