# SPDX-License-Identifier: Apache-2.0
"""What container engines mean by their default seccomp profile, as runc wants it."""

import json

PROFILE = "/usr/share/containers/seccomp.json"
# What container engines allow with CAP_SYS_ADMIN only, and those of it that containerd and Docker
# (both since late in 2022) allow with a smaller capability, too.
ADMIN_CALLS = set("""bpf clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie mount
    mount_setattr move_mount open_tree perf_event_open quotactl quotactl_fd setdomainname
    sethostname setns syslog umount umount2 unshare""".split())
SMALLER = {"bpf": "CAP_BPF", "perf_event_open": "CAP_PERFMON", "syslog": "CAP_SYSLOG"}


def profile_of(caps, smaller):
    """The default profile of containers-common for a container with these capabilities, as runc
    wants it. With `smaller` as containerd and Docker have it: what belongs to CAP_SYS_ADMIN is
    strictly refused, except for what the smaller capabilities are for."""
    with open(PROFILE, encoding="ascii") as f:
        profile = json.load(f)
    held = {name for name, cap in SMALLER.items() if cap in caps} if smaller else set()
    refused = ADMIN_CALLS - held if smaller else set()
    rules = [{"names": sorted(held), "action": "SCMP_ACT_ALLOW"}] if held else []
    if smaller:
        rules.append({"names": sorted(refused - {"clone3"}), "action": "SCMP_ACT_ERRNO",
                      "errnoRet": 1})
    for rule in profile["syscalls"]:
        includes, excludes = (rule.get(k) or {} for k in ("includes", "excludes"))
        if not set(includes.get("caps", [])) <= set(caps) or \
                set(excludes.get("caps", [])) & set(caps) or \
                "amd64" not in includes.get("arches", ["amd64"]) or \
                "amd64" in excludes.get("arches", []):
            continue
        names = [n for n in rule["names"] if n not in held | refused]
        if names:
            rules.append({k: v for k, v in (("names", names), ("action", rule["action"]),
                                            ("args", rule.get("args")),
                                            ("errnoRet", rule.get("errnoRet"))) if v is not None})
    return {"defaultAction": profile["defaultAction"],
            "defaultErrnoRet": profile["defaultErrnoRet"],
            "architectures": ["SCMP_ARCH_X86_64"], "syscalls": rules}
