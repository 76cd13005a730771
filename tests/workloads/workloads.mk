# Small programs with known truth, for the live tests, the VM tests and the bench. See burn.h.
# Included by the Makefile; everything lands in build/workloads/.

WL := $(BUILD)/workloads
WL_SRC := tests/workloads
WL_CFLAGS := -std=gnu17 -D_GNU_SOURCE -O1 -g -fno-omit-frame-pointer -Wall -Wextra -Wshadow
WL_CC = $(CC) $(WL_CFLAGS)

WL_PLAIN := split storm storm_child busy2of10 churn pidreuse threadnames leaderexit memfdexec \
	dlswap dlrun jit jitdump faults maprun crowd schedmix waits
WL_LAYOUTS := lay_bfd lay_bfd_64k lay_prelinked lay_second lay_nosections lay_lld lay_lld_16k \
	lay_lld_64k lay_lld_2m pick_lib
WL_ALL := $(WL_PLAIN) split-static split_stripped split_nopie split_static_pie split_lld_base \
	vdso32 storm_child_a storm_child_b exec_a exec_b swap_a.so swap_b.so shim_perf.so shim_clock.so \
	$(WL_LAYOUTS:%=%.so)

WORKLOADS += $(WL_ALL:%=$(WL)/%)

WL_HDR := $(wildcard $(WL_SRC)/*.h) $(WL_SRC)/workloads.mk
wl_link = @mkdir -p $(@D)
wl_say = $(call say,CC,$@)

$(WL_PLAIN:%=$(WL)/%): $(WL)/%: $(WL_SRC)/%.c $(WL_HDR)
	$(wl_link)
	$(wl_say)$(WL_CC) -o $@ $< -pthread

$(WL)/split-static: $(WL_SRC)/split.c $(WL_HDR)
	$(wl_link)
	$(wl_say)$(WL_CC) -static -o $@ $< -pthread

$(WL)/split_stripped: $(WL)/split-static
	$(wl_say)strip -s -o $@ $<

$(WL)/vdso32: $(WL_SRC)/vdso32.S $(WL_SRC)/workloads.mk
	$(wl_link)
	$(wl_say)$(CC) -m32 -nostdlib -static -no-pie -o $@ $<

# The same program in other layouts (case S-02).
$(WL)/split_nopie: WL_LAYOUT := -no-pie
$(WL)/split_static_pie: WL_LAYOUT := -static-pie -fPIE
$(WL)/split_nopie $(WL)/split_static_pie: $(WL_SRC)/split.c $(WL_HDR)
	$(wl_link)
	$(wl_say)$(WL_CC) $(WL_LAYOUT) -o $@ $< -pthread

$(WL)/split_lld_base: $(WL_SRC)/split.c $(WL_HDR)
	$(wl_link)
	$(wl_say)clang-14 $(WL_CFLAGS) -fPIE -pie -fuse-ld=lld -Wl,--image-base=0x50000 \
		-Wl,-z,max-page-size=0x10000 -o $@ $< -pthread

$(WL)/storm_child_a $(WL)/storm_child_b: $(WL)/storm_child_%: $(WL_SRC)/storm_child.c $(WL_HDR)
	$(wl_link)
	$(wl_say)$(WL_CC) -DSTORM_BURN=storm_burn_$* -DSTORM_MARK='"$*"' -o $@ $<

$(WL)/exec_a $(WL)/exec_b: $(WL)/exec_%: $(WL_SRC)/exec_ab.c $(WL_HDR)
	$(wl_link)
	$(wl_say)$(WL_CC) -DEXEC_BURN=burn_in_$* -o $@ $<

$(WL)/swap_a.so $(WL)/swap_b.so: $(WL)/swap_%.so: $(WL_SRC)/dlswap_lib.c $(WL_HDR)
	$(wl_link)
	$(wl_say)$(WL_CC) -fPIC -shared -DSWAP_FN=swap_in_$* -o $@ $<

$(WL)/shim_perf.so $(WL)/shim_clock.so: $(WL)/%.so: $(WL_SRC)/%.c
	$(wl_link)
	$(wl_say)$(WL_CC) -fPIC -shared -o $@ $<

# One library, many layouts: what differs is in these flags.
wl_flags_lay_bfd :=
wl_flags_lay_bfd_64k := -Wl,-z,max-page-size=0x10000
wl_flags_lay_prelinked := -Wl,-Ttext-segment=0x3000000000
wl_flags_lay_second := -DLAY_SECOND_SEGMENT -Wl,--section-start=text_two=0x900000
wl_flags_lay_lld := -fuse-ld=lld
wl_flags_lay_lld_16k := -fuse-ld=lld -Wl,-z,max-page-size=0x4000
wl_flags_lay_lld_64k := -fuse-ld=lld -Wl,-z,max-page-size=0x10000
wl_flags_lay_lld_2m := -fuse-ld=lld -Wl,-z,max-page-size=0x200000
WL_LLD := $(filter lay_lld%,$(WL_LAYOUTS))
WL_BFD := $(filter-out lay_nosections pick_lib $(WL_LLD),$(WL_LAYOUTS))

$(WL_BFD:%=$(WL)/%.so): $(WL)/%.so: $(WL_SRC)/lay_lib.c $(WL_HDR)
	$(wl_link)
	$(wl_say)$(WL_CC) -fPIC -shared $(wl_flags_$*) -o $@ $<

# Debian's gcc finds no unversioned ld.lld; clang finds its own.
$(WL_LLD:%=$(WL)/%.so): $(WL)/%.so: $(WL_SRC)/lay_lib.c $(WL_HDR)
	$(wl_link)
	$(wl_say)clang-14 $(WL_CFLAGS) -fPIC -shared $(wl_flags_$*) -o $@ $<

$(WL)/lay_nosections.so: $(WL)/lay_bfd.so
	$(wl_say)llvm-objcopy-14 --strip-sections $< $@

$(WL)/pick_lib.so: $(WL_SRC)/pick_lib.c $(WL_SRC)/pick.map $(WL_HDR)
	$(wl_link)
	$(wl_say)$(WL_CC) -fPIC -shared -fno-toplevel-reorder -fcf-protection=none -Wl,-z,lazy \
		-Wl,--version-script=$(WL_SRC)/pick.map -o $@.full $< && \
	objcopy --strip-symbol=pick_nameless $@.full $@ && rm -f $@.full
