#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The image, the manifest and the chart: complete, equal to each other, least privileges.

The chart is rendered by helm where there is one (HELM=program; make test-image builds it).
"""
import copy
import json
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/live"))

from tap import check, equal, note, run, skip, test  # noqa: E402

try:
    import jsonschema
    import yaml
except ImportError as why:
    print(f"1..0 # SKIP {why}: apt-get install python3-yaml python3-jsonschema")
    sys.exit()

SONDE = os.environ.get("SONDE", os.path.join(ROOT, "build/sonde"))
CHART = os.path.join(ROOT, "deploy/helm/sonde")

# Which fields these objects have, as far as they are used here: a wrong word is a failure.
OBJECT = {"apiVersion", "kind", "metadata"}
FIELDS = {
    "DaemonSet": OBJECT | {"spec"}, "ConfigMap": OBJECT | {"data"}, "Namespace": OBJECT,
    "ServiceAccount": OBJECT | {"automountServiceAccountToken"},
    "spec": {"selector", "updateStrategy", "template"},
    "pod": {"serviceAccountName", "automountServiceAccountToken", "hostPID", "nodeSelector",
            "tolerations", "priorityClassName", "terminationGracePeriodSeconds", "containers",
            "volumes", "imagePullSecrets", "affinity"},
    "container": {"name", "image", "imagePullPolicy", "args", "env", "ports", "securityContext",
                  "resources", "startupProbe", "livenessProbe", "volumeMounts"},
    "securityContext": {"runAsUser", "privileged", "allowPrivilegeEscalation", "appArmorProfile",
                        "readOnlyRootFilesystem", "seccompProfile", "capabilities"},
    "probe": {"httpGet", "periodSeconds", "timeoutSeconds", "failureThreshold"},
    "mount": {"name", "mountPath", "readOnly"},
    "volume": {"name", "configMap", "hostPath", "secret"},
}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def manifest():
    return by_kind(read("deploy/kubernetes/daemonset.yaml"))


def by_kind(text):
    return {o["kind"]: o for o in yaml.safe_load_all(text) if o}


def pod_of(objects):
    return objects["DaemonSet"]["spec"]["template"]["spec"]


def helm_template(*args, status=0):
    helm = os.environ.get("HELM") or shutil.which("helm")
    built = os.path.join(ROOT, os.environ.get("BUILD", "build"), "tools/helm")
    if not helm and os.path.exists(built):
        helm = built
    if not helm:
        skip("no helm; make test-image builds one")
    done = subprocess.run([helm, "template", "sonde", CHART, "--kube-version", "1.31.0", *args],
                          capture_output=True, text=True, check=False)
    check((done.returncode == 0) == (status == 0), f"helm: {done.stderr}")
    return done.stdout if status == 0 else done.stderr


def example():
    return subprocess.run([SONDE, "agent", "--example-config"], capture_output=True, text=True,
                          check=True).stdout


def option_names():
    return re.findall(r"(?m)^#?([a-z0-9-]+): ", example())


@test("every option is in manifest, values and schema (UPDATE=1 writes them anew)")
def options():
    args = [] if os.environ.get("UPDATE") else ["-n"]
    done = subprocess.run([os.path.join(ROOT, "tools/deploy_config.py"), *args], input=example(),
                          capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"stale: {done.stdout.split()} {done.stderr}")
    schema = json.loads(read("deploy/helm/sonde/values.schema.json"))
    equal(list(schema["properties"]["config"]["properties"]), option_names(), "options")


def agent_takes(text, path):
    """The configuration is read; a wrong option behind it shows that there was no complaint."""
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    done = subprocess.run([SONDE, "agent", "--config", path, "--freq", "0"], capture_output=True,
                          text=True, check=False)
    check("--freq" in done.stderr and "out of range" in done.stderr, done.stderr)


@test("the agent takes the manifest's configuration")
def config():
    objects = manifest()
    text = objects["ConfigMap"]["data"]["sonde.yaml"]
    agent_takes(text, os.path.join(ROOT, os.environ.get("BUILD", "build"), "manifest.yaml"))


def check_fields(what, have, kind):
    unknown = set(have) - FIELDS[kind]
    check(not unknown, f"{what}: no such fields: {unknown}")


def check_objects(objects):
    for kind, o in objects.items():
        check_fields(kind, o, kind)
    daemons = objects["DaemonSet"]
    check_fields("spec", daemons["spec"], "spec")
    pod = pod_of(objects)
    check_fields("pod", pod, "pod")
    labels = daemons["spec"]["template"]["metadata"]["labels"]
    wanted = daemons["spec"]["selector"]["matchLabels"]
    check(wanted.items() <= labels.items(), "the selector does not fit the pod")
    equal(len(pod["containers"]), 1, "containers")
    c = pod["containers"][0]
    check_fields("container", c, "container")
    check_fields("securityContext", c["securityContext"], "securityContext")
    ports = {p["name"]: p["containerPort"] for p in c["ports"]}
    for probe in ("startupProbe", "livenessProbe"):
        check_fields(probe, c[probe], "probe")
        equal(c[probe]["httpGet"], {"path": "/healthz", "port": "metrics"}, probe)
    listen = yaml.safe_load(objects["ConfigMap"]["data"]["sonde.yaml"])["listen"]
    equal(listen, f":{ports['metrics']}", "port of the probes")
    volumes = {v["name"] for v in pod["volumes"]}
    for v in pod["volumes"]:
        check_fields("volume", v, "volume")
    for m in c["volumeMounts"]:
        check_fields("mount", m, "mount")
    equal({m["name"] for m in c["volumeMounts"]}, volumes, "volumes and mounts")
    check(c["resources"]["requests"] and "memory" in c["resources"]["limits"] and
          "cpu" not in c["resources"]["limits"], "resources")
    equal(pod["serviceAccountName"], objects["ServiceAccount"]["metadata"]["name"], "account")
    for v in pod["volumes"]:
        if "configMap" in v:
            equal(v["configMap"]["name"], objects["ConfigMap"]["metadata"]["name"], "config map")


def unit_capabilities():
    m = re.search(r"(?m)^CapabilityBoundingSet=(.*)$", read("deploy/sonde-agent.service"))
    return {name.removeprefix("CAP_") for name in m[1].split()}


@test("the manifest: fields, names and ports fit each other")
def manifest_fits():
    check_objects(manifest())
    equal(manifest()["Namespace"]["metadata"]["labels"],
          {"pod-security.kubernetes.io/enforce": "privileged"}, "pod security")


@test("the manifest: least privileges, the same as the systemd unit's")
def privileges():
    pod = pod_of(manifest())
    c = pod["containers"][0]["securityContext"]
    equal(set(c["capabilities"]["add"]), unit_capabilities(), "capabilities")
    equal(c["capabilities"]["drop"], ["ALL"], "dropped")
    equal((c["privileged"], c["allowPrivilegeEscalation"], c["readOnlyRootFilesystem"]),
          (False, False, True), "privileged, escalation, read-only root")
    equal(c["seccompProfile"]["type"], "RuntimeDefault", "seccomp")
    check("hostNetwork" not in pod and pod["hostPID"] is True, "namespaces")
    equal(pod["automountServiceAccountToken"], False, "token")
    writable = [m["mountPath"] for m in pod["containers"][0]["volumeMounts"]
                if not m.get("readOnly")]
    equal(writable, ["/var/lib/sonde"], "writable mounts")


def values():
    return yaml.safe_load(read("deploy/helm/sonde/values.yaml"))


@test("the chart's values keep to its schema, and wrong ones do not")
def schema():
    s = json.loads(read("deploy/helm/sonde/values.schema.json"))
    jsonschema.Draft7Validator.check_schema(s)
    validator = jsonschema.Draft7Validator(s)
    equal([e.message for e in validator.iter_errors(values())], [], "mistakes in values.yaml")
    wrong = (("config", "freq", 0), ("config", "freq", "many"), ("config", "no-such-option", 1),
             ("config", "window", "soon"), ("config", "idle", "maybe"), (None, "metricsPort", 0),
             (None, "capabilities", ["ALL"]), (None, "capabilities", []), (None, "imagee", {}),
             (None, "dataPath", "relative"), ("seccompProfile", "type", "Off"), ("image", "pullPolicy", "Sometimes"),
             (None, "terminationGracePeriodSeconds", 5))
    for where, key, value in wrong:
        v = copy.deepcopy(values())
        (v[where] if where else v)[key] = value
        check(list(validator.iter_errors(v)), f"{where} {key}={value!r} is taken")
    for key, value in (("freq", 99), ("collect", "500ms"), ("cpu-budget", 0.5), ("idle", True)):
        v = copy.deepcopy(values())
        v["config"][key] = value
        equal([e.message for e in validator.iter_errors(v)], [], f"{key}={value!r}")


@test("the chart renders to the manifest")
def chart():
    objects = by_kind(helm_template())
    check_objects(objects)
    want, got = pod_of(manifest()), pod_of(objects)
    got["containers"][0]["image"] = want["containers"][0]["image"]
    equal(got, want, "pods")
    equal(yaml.safe_load(objects["ConfigMap"]["data"]["sonde.yaml"]),
          yaml.safe_load(manifest()["ConfigMap"]["data"]["sonde.yaml"]), "configurations")
    agent_takes(objects["ConfigMap"]["data"]["sonde.yaml"],
                os.path.join(ROOT, os.environ.get("BUILD", "build"), "chart.yaml"))


@test("the chart with other values")
def chart_values():
    objects = by_kind(helm_template(
        "--set", "config.freq=99,secretName=token,debugPath=,serviceAccount.name=x",
        "--set", "config.listen=:9999,metricsPort=9999,config.max-size=5000000",
        "--set", "capabilities={SYS_ADMIN},podLabels.team=a,seccompProfile.type=Unconfined"))
    check_objects(objects)
    c = pod_of(objects)["containers"][0]
    equal({m["mountPath"] for m in c["volumeMounts"]},
          {"/etc/sonde", "/var/lib/sonde", "/etc/sonde-secrets"}, "mounts")
    equal(c["securityContext"]["seccompProfile"], {"type": "Unconfined"}, "seccomp profile")
    equal(c["securityContext"]["allowPrivilegeEscalation"], True, "escalation with SYS_ADMIN")
    text = objects["ConfigMap"]["data"]["sonde.yaml"]
    agent_takes(text, os.path.join(ROOT, os.environ.get("BUILD", "build"), "chart2.yaml"))
    equal(yaml.safe_load(text)["freq"], 99, "freq")
    why = helm_template("--set", "config.freq=0", status=1)
    note(why.strip().replace("\n", " "))
    helm_template("--set", "config.frequency=9", status=1)


def dockerfile_stages():
    """[[(instruction, text)]] of deploy/Dockerfile, one list for each FROM."""
    text = re.sub(r"(?m)^#.*\n", "", read("deploy/Dockerfile")).replace("\\\n", " ")
    stages = []
    for line in filter(str.strip, text.splitlines()):
        word, rest = line.split(None, 1)
        if word == "FROM":
            stages.append([])
        stages[-1].append((word, " ".join(rest.split())))
    return stages


@test("deploy/Dockerfile: what linters of such files ask for")
def dockerfile():
    stages = dockerfile_stages()
    known = {"FROM", "RUN", "COPY", "WORKDIR", "USER", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT", "CMD"}
    names = set()
    for stage in stages:
        image = stage[0][1].split()
        check(re.match(r"^[a-z]+:[0-9a-z.-]+$", image[0]) and "latest" not in image[0], f"FROM {image}")
        names |= set(image[2:])
        for word, text in stage:
            check(word in known, f"no instruction: {word} {text}")
            if "apt-get install" in text:
                check("apt-get update &&" in text and " -y " in text and
                      "--no-install-recommends" in text, text)
            if word == "COPY":
                *sources, _ = [t for t in text.split() if not t.startswith("--")]
                origin = re.findall(r"--from=(\S+)", text)
                check(set(origin) <= names, text)
                check(origin or all(os.path.exists(os.path.join(ROOT, s)) for s in sources), text)
    last = stages[-1]
    check(all("rm -rf /var/lib/apt/lists/*" in t for w, t in last if "apt-get" in t),
          "package lists stay in the image")
    check(not any(tool in t for _, t in last for tool in ("gcc", "clang", "make")), "build tools")
    words = dict(last)
    equal(words["USER"], "0:0", "user by number")
    for word in ("ENTRYPOINT", "CMD"):
        check(isinstance(json.loads(words[word]), list), f"{word} is not in exec form")
    listen = pod_of(manifest())["containers"][0]["ports"][0]["containerPort"]
    equal(words["EXPOSE"], str(listen), "port")
    equal(json.loads(words["CMD"]), pod_of(manifest())["containers"][0]["args"], "arguments")
    check({"build", ".git"} <= set(read(".dockerignore").split()), ".dockerignore")


@test("the image: its packages hold all libraries of the program")
def packages():
    listed = {line for line in read("deploy/packages").split("\n") if line and line[0] != "#"}
    needed = subprocess.run(["ldd", SONDE], capture_output=True, text=True, check=True).stdout
    direct = subprocess.run(["readelf", "-d", SONDE], capture_output=True, text=True,
                            check=True).stdout
    names = re.findall(r"NEEDED.*\[(.*)\]", direct)
    for name in names:
        path = re.search(rf"(?m)^\s*{re.escape(name)} => (\S+)", needed)
        if not path or re.match(r"(libc|libm|ld-linux.*)\.so", name):
            continue
        owner = subprocess.run(["dpkg", "-S", os.path.realpath(path[1])], capture_output=True,
                               text=True, check=False).stdout.split(":")[0]
        check(not owner or owner in listed,
              f"{name} is of {owner}, which deploy/packages does not list")


if __name__ == "__main__":
    run()
