# SPDX-License-Identifier: Apache-2.0
# Workloads with stacks that are hard to walk (cases U-01 to U-10). Needs workloads.mk's variables,
# but may be included before it.

UW := $(BUILD)/workloads
UW_SRC := tests/workloads
UW_CFLAGS = -std=gnu17 -D_GNU_SOURCE -O2 -g -fomit-frame-pointer -Wall -Wextra -Wshadow
UW_HDR := $(UW_SRC)/burn.h $(UW_SRC)/shapes.h $(UW_SRC)/unwind.mk
uw = @mkdir -p $(@D); $(if $(filter 1,$(V)),,printf '  %-7s %s\n' CC $@;) $(CC) $(UW_CFLAGS)

WORKLOADS += $(addprefix $(UW)/,deep_small deep_large depth shapes shapes_nocet shapes_call.so \
	signals_plain manylibs) $(BUILD)/tools/unwind_build $(if $(shell command -v musl-gcc),$(UW)/signals_musl)

$(UW)/deep_small: $(UW_SRC)/deep.c $(UW_HDR)
	$(uw) -DDEEP_ROOM=8 -o $@ $<

$(UW)/deep_large: $(UW_SRC)/deep.c $(UW_HDR)
	$(uw) -DDEEP_ROOM=480 -o $@ $<

# For guests, which have no C library.
$(UW)/deep_small-static $(UW)/deep_large-static: $(UW)/%-static: $(UW_SRC)/deep.c $(UW_HDR)
	$(uw) -static -DDEEP_ROOM=$(if $(filter %small,$*),8,480) -o $@ $<

$(UW)/depth: $(UW_SRC)/depth.c $(UW_HDR)
	$(uw) -o $@ $<

$(UW)/shapes_fp.o: $(UW_SRC)/shapes_fp.c $(UW_HDR)
	$(uw) -fno-omit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables -c -o $@ $<

$(UW)/shapes_lib.so: $(UW_SRC)/shapes_lib.c $(UW_HDR)
	$(uw) -fPIC -shared -Wl,-soname,$(@F) -o $@ $<

$(UW)/shapes_call.so: $(UW_SRC)/shapes_call.c $(UW)/shapes_lib.so
	$(uw) -fPIC -shared -fno-builtin -Wl,-z,lazy -Wl,-rpath,'$$ORIGIN' -o $@ $^

# The PLT's entries have another form with -fcf-protection.
$(UW)/shapes: UW_CET := full
$(UW)/shapes_nocet: UW_CET := none
$(UW)/shapes $(UW)/shapes_nocet: $(UW_SRC)/shapes.c $(UW_SRC)/shapes_asm.S $(UW)/shapes_fp.o \
		$(UW)/shapes_lib.so | $(UW)/shapes_call.so
	$(uw) -fno-toplevel-reorder -fcf-protection=$(UW_CET) -Wl,-z,lazy -Wl,-rpath,'$$ORIGIN' \
		-o $@ $^ -pthread

$(UW)/signals_plain: $(UW_SRC)/signals.c $(UW_HDR)
	$(uw) -o $@ $<

$(UW)/signals_musl: $(UW_SRC)/signals.c $(UW_HDR)
	@mkdir -p $(@D)
	$(if $(filter 1,$(V)),,@printf '  %-7s %s\n' CC $@;) musl-gcc $(UW_CFLAGS) -static -o $@ $<

$(UW)/manylibs: $(UW_SRC)/manylibs.c $(UW_HDR)
	$(uw) -o $@ $<

# What building one file's table takes.
$(BUILD)/tools/unwind_build: tests/unwind_table/unwind_build.c $(BUILD)/rel/symbolizer.a $(BUILD)/rel/base.a
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CFLAGS_BASE) $(CFLAGS_rel) -o $@ $^ $(LIBS)
