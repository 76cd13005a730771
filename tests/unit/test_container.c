/* SPDX-License-Identifier: Apache-2.0 */
/* Table test of agent/resolve/container: each way that runtimes and systemd name a cgroup. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/resolve/container.h"

#define A          "8b0a3d5f1c7e92468b0a3d5f1c7e92468b0a3d5f1c7e92468b0a3d5f1c7e9246"
#define B          "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define UID        "5c1a6e7b-0d2f-4c3e-9a8b-7f6e5d4c3b2a"
#define UID_       "5c1a6e7b_0d2f_4c3e_9a8b_7f6e5d4c3b2a"
#define STATIC_POD "0123456789abcdef0123456789abcdef"
#define NODE       "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"

static const struct {
	const char *path;
	enum container_kind kind;
	const char *runtime, *id, *pod, *unit, *slice;
} cases[] = {
	/* Kubernetes, systemd driver. */
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_
	  ".slice/cri-containerd-" A ".scope",
	  CONTAINER_PROCESS, "containerd", A, UID },
	{ "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_ ".slice/crio-" A
	  ".scope",
	  CONTAINER_PROCESS, "cri-o", A, UID },
	{ "/kubepods.slice/kubepods-pod" UID_ ".slice/docker-" A ".scope", CONTAINER_PROCESS,
	  "docker", A, UID }, /* guaranteed: no class */
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" STATIC_POD
	  ".slice/cri-containerd-" A ".scope",
	  CONTAINER_PROCESS, "containerd", A, STATIC_POD },
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice/crio-" A
	  ".scope/container",
	  CONTAINER_PROCESS, "cri-o", A, UID }, /* crun */
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice",
	  CONTAINER_POD, "", "", UID },
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_
	  ".slice/crio-conmon-" A ".scope",
	  CONTAINER_POD, "", "", UID },

	/* Kubernetes, cgroupfs driver; the same in v1, v2 and hybrid. */
	{ "/kubepods/burstable/pod" UID "/" A, CONTAINER_PROCESS, "", A, UID },
	{ "/kubepods/besteffort/pod" UID "/" A, CONTAINER_PROCESS, "", A, UID },
	{ "/kubepods/pod" UID "/" A, CONTAINER_PROCESS, "", A, UID },
	{ "/kubepods/burstable/pod" UID "/crio-" A, CONTAINER_PROCESS, "cri-o", A, UID },
	{ "/kubepods/burstable/pod" STATIC_POD "/" A, CONTAINER_PROCESS, "", A, STATIC_POD },
	{ "/kubepods/burstable/pod" UID, CONTAINER_POD, "", "", UID },
	{ "/kubepods/burstable/pod" UID "/" A "/app/worker", CONTAINER_PROCESS, "", A, UID },

	/* Drivers that do not agree: the runtime takes the systemd name literally. */
	{ "/system.slice/containerd.service/kubepods-burstable-pod" UID_ ".slice:cri-containerd:" A,
	  CONTAINER_PROCESS, "containerd", A, UID },
	{ "/system.slice/containerd.service/kubepods-pod" UID_ ".slice:cri-containerd:" A,
	  CONTAINER_PROCESS, "containerd", A, UID },
	{ "/kubepods-besteffort-pod" UID_ ".slice:crio:" A, CONTAINER_PROCESS, "cri-o", A, UID },
	{ "/system.slice:docker:" A, CONTAINER_PROCESS, "docker", A },

	/* kind, minikube: a node is a container itself. */
	{ "/docker/" B "/kubelet/kubepods/burstable/pod" UID "/" A, CONTAINER_PROCESS, "", A, UID },
	{ "/docker/" B "/" NODE "kubelet-kubepods-burstable-pod" UID_ ".slice/cri-containerd-" A
	  ".scope",
	  CONTAINER_PROCESS, "containerd", A, UID },
	{ "/system.slice/docker-" B ".scope/" NODE "kubelet-kubepods-burstable-pod" UID_
	  ".slice/cri-containerd-" A ".scope",
	  CONTAINER_PROCESS, "containerd", A, UID },
	{ "/docker/" B "/system.slice/kubelet.service", CONTAINER_PROCESS, "docker", B, "",
	  "kubelet.service", "system.slice" },
	{ "/system.slice/docker-" B ".scope/init.scope", CONTAINER_PROCESS, "docker", B, "",
	  "init.scope" },
	{ "/docker/" B "/kubelet/kubepods/burstable/pod" UID, CONTAINER_POD, "", "", UID },

	/* docker, also in itself, in a pod, for rootless users, with a parent of one's own. */
	{ "/docker/" A, CONTAINER_PROCESS, "docker", A },
	{ "/system.slice/docker-" A ".scope", CONTAINER_PROCESS, "docker", A },
	{ "/system.slice/docker-" A ".scope/init", CONTAINER_PROCESS, "docker", A },
	{ "/docker/" B "/docker/" A, CONTAINER_PROCESS, "docker", A },
	{ "/kubepods/burstable/pod" UID "/" B "/docker/" A, CONTAINER_PROCESS, "docker", A, UID },
	{ "/docker/buildkit/" A, CONTAINER_PROCESS, "buildkit", A },
	{ "/actions_job/" A, CONTAINER_PROCESS, "docker", A },
	{ "/mine/of/my/own/" A, CONTAINER_PROCESS, "", A },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" A ".scope",
	  CONTAINER_PROCESS, "docker", A },
	{ "/docker/" A "/system.slice/nginx.service", CONTAINER_PROCESS, "docker", A, "",
	  "nginx.service", "system.slice" },
	{ "/docker/" A "/system.slice/system-getty.slice/getty@tty1.service", CONTAINER_PROCESS,
	  "docker", A, "", "getty@tty1.service", "system-getty.slice" },

	/* podman. */
	{ "/machine.slice/libpod-" A ".scope", CONTAINER_PROCESS, "podman", A },
	{ "/machine.slice/libpod-" A ".scope/container", CONTAINER_PROCESS, "podman", A },
	{ "/libpod_parent/libpod-" A, CONTAINER_PROCESS, "podman", A },
	{ "/machine.slice/machine-libpod_pod_" B ".slice/libpod-" A ".scope/container",
	  CONTAINER_PROCESS, "podman", A },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" A ".scope/container",
	  CONTAINER_PROCESS, "podman", A },
	{ "/system.slice/web.service/libpod-payload-" A, CONTAINER_PROCESS, "podman", A, "",
	  "web.service", "system.slice" },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/web.service/libpod-payload-" A,
	  CONTAINER_PROCESS, "podman", A, "", "web.service", "app.slice" },
	{ "/machine.slice/libpod-conmon-" A ".scope", CONTAINER_NONE, "", "", "", "",
	  "machine.slice" },

	/* containerd by itself. */
	{ "/k8s.io/" A, CONTAINER_PROCESS, "containerd", A },
	{ "/system.slice/nerdctl-" A ".scope", CONTAINER_PROCESS, "containerd", A },
	{ "/default/" A, CONTAINER_PROCESS, "", A },

	/* ECS, Cloud Foundry, LXC, systemd-nspawn. */
	{ "/ecs/" STATIC_POD "/" STATIC_POD "-2838478192", CONTAINER_PROCESS, "ecs",
	  STATIC_POD "-2838478192" },
	{ "/ecs/" UID "/" A, CONTAINER_PROCESS, "ecs", A },
	{ "/ecs/cluster/" STATIC_POD "/" A, CONTAINER_PROCESS, "ecs", A },
	{ "/ecstasks.slice/ecstasks-" STATIC_POD ".slice/docker-" A ".scope", CONTAINER_PROCESS,
	  "docker", A },
	{ "/garden/" UID, CONTAINER_PROCESS, "garden", UID },
	{ "/system.slice/garden.service/garden/6f265890-5165-7fab-6b52-18d1", CONTAINER_PROCESS,
	  "garden", "6f265890-5165-7fab-6b52-18d1" },
	{ "/lxc.payload.web", CONTAINER_PROCESS, "lxc", "web" },
	{ "/lxc.payload.web/system.slice/ssh.service", CONTAINER_PROCESS, "lxc", "web", "",
	  "ssh.service", "system.slice" },
	{ "/lxc.payload/web/init.scope", CONTAINER_PROCESS, "lxc", "web", "", "init.scope" },
	{ "/lxc/101/ns", CONTAINER_PROCESS, "lxc", "101" },
	{ "/lxc/101", CONTAINER_PROCESS, "lxc", "101" },
	{ "/lxc.monitor.web", CONTAINER_NONE, "", "" },
	{ "/machine.slice/systemd-nspawn@box.service/payload", CONTAINER_PROCESS, "systemd-nspawn",
	  "box" },
	{ "/machine.slice/machine-box.scope", CONTAINER_PROCESS, "systemd-nspawn", "box" },
	{ "/machine.slice/machine-qemu\\x2d1\\x2dvm.scope/libvirt/emulator", CONTAINER_UNIT, "", "",
	  "", "machine-qemu\\x2d1\\x2dvm.scope", "machine.slice" },

	/* A runtime that is not known: its id all the same. */
	{ "/system.slice/zorg-box-" A ".scope", CONTAINER_PROCESS, "", A },

	/* The agent's own view, of a cgroup namespace that is not the first one. */
	{ "/../../kubepods/burstable/pod" UID "/" A, CONTAINER_PROCESS, "", A, UID },
	{ "/../cri-containerd-" A ".scope", CONTAINER_PROCESS, "containerd", A },

	/* systemd. */
	{ "/system.slice/ssh.service", CONTAINER_UNIT, "", "", "", "ssh.service", "system.slice" },
	{ "/system.slice/system-postgresql.slice/postgresql@15-main.service", CONTAINER_UNIT, "",
	  "", "", "postgresql@15-main.service", "system-postgresql.slice" },
	{ "/init.scope", CONTAINER_UNIT, "", "", "", "init.scope" },
	{ "/system.slice/systemd-udevd.service/udev", CONTAINER_UNIT, "", "", "",
	  "systemd-udevd.service", "system.slice" },
	{ "/system.slice/a.service/below/b.service", CONTAINER_UNIT, "", "", "", "a.service",
	  "system.slice" },
	{ "/system.slice/dev-mqueue.mount", CONTAINER_UNIT, "", "", "", "dev-mqueue.mount",
	  "system.slice" },
	{ "/system.slice/_cpu.service", CONTAINER_UNIT, "", "", "", "cpu.service", "system.slice" },
	{ "/user.slice/user-1000.slice/session-3.scope", CONTAINER_USER, "", "", "",
	  "session-3.scope", "user-1000.slice" },
	{ "/user.slice/user-1000.slice/user@1000.service/init.scope", CONTAINER_USER, "", "", "",
	  "init.scope", "user-1000.slice" },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/editor.service", CONTAINER_USER,
	  "", "", "", "editor.service", "app.slice" },
	{ "/user.slice/user-1000.slice/user@1000.service", CONTAINER_USER, "", "", "",
	  "user@1000.service", "user-1000.slice" },

	/* Never a wrong id. */
	{ "/user.slice/user-1000.slice/session-1.scope/" A, CONTAINER_USER, "", "", "",
	  "session-1.scope", "user-1000.slice" },
	{ "/user.slice/user-1000.slice/session-1.scope/docker/" A, CONTAINER_USER, "", "", "",
	  "session-1.scope", "user-1000.slice" },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" B
	  ".scope/kubelet/kubepods/pod" UID "/" A,
	  CONTAINER_PROCESS, "", A, UID },
	{ "/docker/0" A, CONTAINER_NONE, "", "" }, /* 65 */
	{ "/docker/" B "0", CONTAINER_NONE, "", "" },
	{ "/docker/0112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", CONTAINER_NONE,
	  "", "" }, /* 63 */
	{ "/docker/A0112233445566778899AABBCCDDEEFF00112233445566778899AABBCCDDEEFF",
	  CONTAINER_NONE, "", "" },
	{ "/system.slice/docker-0" A ".scope", CONTAINER_UNIT, "", "", "", "docker-0" A ".scope",
	  "system.slice" },
	{ "/docker/" A ".mount", CONTAINER_NONE, "", "" },
	{ "/x/:" A, CONTAINER_NONE, "", "" },
	{ "/x/docker:" A, CONTAINER_NONE, "", "" },
	{ "/x/UP-" A, CONTAINER_NONE, "", "" },
	{ "/x/" STATIC_POD "-12", CONTAINER_NONE, "", "" }, /* not below ecs */
	{ "/ecs/x/" STATIC_POD "-", CONTAINER_NONE, "", "" },
	{ "/ecs/x/" STATIC_POD "-1a", CONTAINER_NONE, "", "" },
	{ "/x/" UID, CONTAINER_NONE, "", "" }, /* not below garden */
	{ "/garden/6f265890-5165-7fab-6b52-18d", CONTAINER_NONE, "", "" },
	{ "/kubepods/pod5c1a6e7b-0d2f-4c3e-9a8b-7f6e5d4c3b2", CONTAINER_NONE, "", "" },
	{ "/kubepods/pod" UID "x", CONTAINER_NONE, "", "" },
	{ "/kubepods/tripod" UID, CONTAINER_NONE, "", "" },
	{ "/lxc.payload.", CONTAINER_NONE, "", "" },
	{ "/machine.slice/systemd-nspawn@.service", CONTAINER_UNIT, "", "", "",
	  "systemd-nspawn@.service", "machine.slice" },
	{ "/.scope", CONTAINER_NONE, "", "" },
	{ "/", CONTAINER_NONE, "", "" },
	{ "", CONTAINER_NONE, "", "" },
	{ "//docker///" A "//", CONTAINER_PROCESS, "docker", A },
};

static void check_text(const char *path, const char *what, struct container_text got,
		       const char *want)
{
	if (!want)
		want = "";
	if (got.len == strlen(want) && memcmp(got.at ? got.at : "", want, got.len) == 0)
		return;
	fail_msg("%s: %s is '%.*s', not '%s'", path, what, (int)got.len, got.at, want);
}

/* In memory of just the path's size, so that the sanitizer sees any look beyond it. */
static void parse(const char *path, size_t len, struct container *ret, char **ret_copy)
{
	*ret_copy = malloc(len ? len : 1);
	assert_non_null(*ret_copy);
	memcpy(*ret_copy, path, len);
	container_parse(*ret_copy, len, ret);
}

static void test_paths(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *path = cases[i].path;
		struct container c;
		char *copy;

		parse(path, strlen(path), &c, &copy);
		if (c.kind != cases[i].kind)
			fail_msg("%s: kind %d, not %d", path, c.kind, cases[i].kind);
		check_text(path, "the runtime",
			   (struct container_text){ c.runtime, strlen(c.runtime) },
			   cases[i].runtime);
		check_text(path, "the id", c.id, cases[i].id);
		check_text(path, "the pod", (struct container_text){ c.pod_uid, strlen(c.pod_uid) },
			   cases[i].pod);
		check_text(path, "the unit", c.unit, cases[i].unit);
		if (cases[i].slice)
			check_text(path, "the slice", c.slice, cases[i].slice);
		free(copy);
	}
}

/* Without its outermost names, as the kernel side cuts what is too long: never another id. */
static void test_cut_paths(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *want = cases[i].id ? cases[i].id : "";

		for (const char *rest = cases[i].path; *rest; rest++) {
			struct container c;
			char *copy;

			if (*rest != '/')
				continue;
			parse(rest, strlen(rest), &c, &copy);
			if (c.id.len == 64 && memcmp(c.id.at, *want ? want : A, 64) != 0)
				fail_msg("%s: id %.64s", rest, c.id.at);
			free(copy);
		}
	}
}

/* Of more names than are looked at, the innermost count. */
static void test_many_names(void **state)
{
	char path[4096] = "/docker/" B, *end = path + strlen(path);
	struct container c;

	for (int i = 0; i < 200; i++)
		end = stpcpy(end, "/x");
	container_parse(path, strlen(path), &c);
	assert_int_equal(c.kind, CONTAINER_NONE);
	end = stpcpy(end, "/docker/" A);
	container_parse(path, strlen(path), &c);
	check_text("many names", "the id", c.id, A);
}

static struct container parsed(const char *path)
{
	struct container c;

	container_parse(path, strlen(path), &c);
	return c;
}

/* Hybrid hosts: one task under two hierarchies. */
static void test_tells_more(void **state)
{
	static const char *const ascending[] = {
		"/",
		"/system.slice/containerd.service",
		"/user.slice/user-0.slice/session-1.scope",
		"/kubepods/pod" UID,
		"/docker/" A,
		"/docker/" A "/docker/" B,
	};
	const size_t count = sizeof(ascending) / sizeof(ascending[0]);

	for (size_t i = 0; i < count; i++) {
		struct container a = parsed(ascending[i]);

		for (size_t j = 0; j < count; j++) {
			struct container b = parsed(ascending[j]);

			assert_int_equal(container_tells_more(&a, &b), i > j);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_cut_paths),
		cmocka_unit_test(test_many_names),
		cmocka_unit_test(test_tells_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
