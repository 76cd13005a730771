#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""20 kHz sampling under churn of mappings: no wrong mapping; what is refused is counted."""

import lab
from tap import check, equal, note, run, test

scratch = lab.Scratch()
HZ = 20000


@test("20 kHz beside mmap churn in several threads: no sample in a wrong file")
def churn():
    files = lab.Scratch()
    length = lab.seconds(5, 60)
    with lab.Sysctl("kernel.perf_event_max_sample_rate", 4 * HZ), \
            lab.Sysctl("kernel.perf_cpu_time_max_percent", 0):
        with lab.Workload(lab.wl("churn"), "-d", files.name) as w:
            r = lab.record("-F", HZ, "-p", w.pid, "-d", length, out=scratch.path("churn.pb.gz"))
            truth = w.stop()
    samples = r.profile.samples
    total = r.count(samples)
    note(f"{total} samples of {truth['runs']} runs of {truth['files']} files and "
         f"{truth['changes']} other changes; facts {r.facts}")
    check(total > 2000 * length, f"only {total} samples arrived")

    right, wrong, examples = lab.wrong_names(r, samples, "churn_0")
    note(f"in the files' code: {right} right, {wrong} wrong {examples}")
    equal(wrong, 0, "samples with another file's name")
    check(right > 0.05 * total, "too few samples in the files' code")

    # Samples of a runner that is in foreign code, in user mode, and not named: refused or late.
    inside = [s for s in samples if str(s.labels.get(lab.LABEL_THREAD)).startswith("churn_0") and
              lab.in_user_mode(s)]
    named = r.count(s for s in inside if lab.leaf(s).function == s.labels[lab.LABEL_THREAD])
    marked = r.count(s for s in inside if lab.is_marker(lab.leaf(s)))
    all_inside = r.count(inside)
    note(f"of {all_inside} samples of runners under a file's name: {named} in that file's code, "
         f"{marked} marked, the rest in run_file, prctl or mmap")
    busy = r.facts.get("vma_busy", 0) + r.facts.get("no_mapping", 0)
    check(marked <= busy, f"{marked} marked frames, but vma_busy + no_mapping = {busy}")
    check(named >= 0.95 * all_inside, "samples in the files' code without a name")


@test("spinner and vDSO threads of the same run: their own code only")
def others():
    files = lab.Scratch()
    with lab.Workload(lab.wl("churn"), "-d", files.name) as w:
        r = lab.record("-F", 4999, "-p", w.pid, "-d", lab.seconds(3, 10),
                       out=scratch.path("others.pb.gz"))
        w.stop()
    for thread, function in (("spinner", "churn_spin"),):
        mine = [s for s in r.select(thread=thread) if lab.in_user_mode(s)]
        good = r.count(s for s in mine if lab.leaf(s).function == function)
        note(f"{thread}: {good} of {r.count(mine)} samples in {function}")
        check(mine and good >= 0.99 * r.count(mine), f"{thread} is elsewhere")
    vdso = [s for s in r.select(thread="vdso") if lab.in_user_mode(s)]
    inside = [s for s in vdso if lab.leaf(s).module == lab.MODULE_VDSO]
    named = r.count(s for s in inside if "clock_gettime" in str(lab.leaf(s).function) or
                    "getcpu" in str(lab.leaf(s).function))
    note(f"vdso: {r.count(inside)} of {r.count(vdso)} samples in the vDSO, {named} named; leaves "
         f"{sorted({lab.leaf(s).text() for s in vdso})[:8]}")
    check(r.count(inside) > 0.3 * r.count(vdso), "the vDSO is not seen")
    check(named >= 0.95 * r.count(inside), "vDSO symbols are missing")


if __name__ == "__main__":
    run()
