#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles of known programs through real sinks: a real OpenTelemetry Collector, and strict peers
for Parca's and Pyroscope's push paths. What arrives equals what was sampled."""

import os
import ssl
import subprocess

import peer
import storelab
from storelab import agent, agentlab, lab
from tap import check, equal, note, run, test

scratch = lab.Scratch()
PROGRAM = "split"


def wait_sent(a, sink, windows=3, timeout=60):
    a.wait_metric(f"sonde_sink_windows_total[{sink}]", windows, timeout)


def workload():
    return lab.Workload(lab.wl(PROGRAM), "-n", str(os.cpu_count()))


def check_equal(directory, got, kind, what):
    want = storelab.sampled(directory, kind)
    late = storelab.waiting(directory)
    missing, more = storelab.compare(want, got, late)
    shown = sum(sum(rows.values()) for (_, program), rows in got.items() if program == PROGRAM)
    note(f"{what}: {len(want)} windows and programs, {storelab.total(want)} of {kind}; {shown} of "
         f"{PROGRAM}; missing {missing}, more {more}; {len(late)} windows wait")
    check(shown > 0, f"{PROGRAM} is not among {sorted({p for _, p in got})}")
    equal((missing, more), (0, 0), f"{what}: missing and more than sampled")


@test("a real collector stores what was sampled, field by field")
def collector():
    directory = scratch.path("collector")
    with storelab.Collector(scratch) as c, workload():
        with agent(directory, "--otlp", f"http://127.0.0.1:{c.port}", "--node", "node-7",
                   "--labels", "env=test") as a:
            a.wait_ready()
            wait_sent(a, "otlp")
            a.stop()
            equal(a.problems(), [], "warnings")
        requests = [storelab.Json(r) for r in c.requests()]
    series = [s for r in requests for s in r.series()]
    check_equal(directory, storelab.arrived(series, "samples", "process.executable.name"),
                "samples", "collector")
    mine = [s for s in series if s.labels.get("process.executable.name") == PROGRAM]
    for s in mine:
        equal(s.labels["service.name"], PROGRAM, "service.name")
        equal(s.labels["host.name"], "node-7", "host.name")
        equal(s.labels["env"], "test", "label of the user")
        equal(s.period, 1000000000 // 99, "period")
    ids = {}
    for r in requests:
        ids.update(r.build_ids())
    path = os.path.realpath(lab.wl(PROGRAM))
    equal(ids.get(path), storelab.build_id_of(path), f"build id of {path}")
    names = {frame for s in mine for stack in s.rows for frame in stack}
    check("main" in names, f"functions of {PROGRAM}: {sorted(names)}")
    equal(len({s.key for s in series}), len(series), "profile ids are unique")


@test("all sinks at once take what was sampled: OTLP, Parca, Pyroscope by the rules, and a folder")
def all_sinks():
    directory, folder = scratch.path("all"), scratch.path("folder")
    os.mkdir(folder)
    with peer.Peer() as p, workload():
        url = f"http://127.0.0.1:{p.port}"
        with agent(directory, "--otlp", url, "--parca", url, "--pyroscope", url,
                   "--export-dir", folder, "--thread-names") as a:
            a.wait_ready()
            for sink in ("otlp", "parca", "pyroscope", "directory"):
                wait_sent(a, sink, int(lab.seconds(3, 290)), 700)
            a.stop()
            equal(a.problems(), [], "warnings")
        equal(p.bad, [], "what the rules refuse")
        for form in ("otlp", "parca", "pyroscope"):
            name = "process.executable.name" if form == "otlp" else "comm"
            check_equal(directory, storelab.arrived(p.series(form), "samples", name), "samples",
                        form)
        for form in ("parca", "pyroscope"):
            check_equal(directory, storelab.arrived(p.series(form), "cpu", "comm"), "cpu", form)
            for s in p.series(form):
                equal(s.labels["__name__"], "process_cpu", "__name__")
                equal(s.labels["node"], os.uname().nodename, "node")
    found = subprocess.run(["find", folder, "-name", "*.pb.gz"], capture_output=True,
                           text=True).stdout.split()
    got = {}
    for path in found:
        x = storelab.pprofread.load(path)
        x.check()
        check(f"node: {os.uname().nodename}" in x.comments, x.comments)
        rows = got.setdefault((x.time_ns, path[len(folder) + 1:].split("/")[0]), {})
        for s in x.samples:
            stack = storelab.texts_of(s)
            rows[stack] = rows.get(stack, 0) + s.values[0]
    want = storelab.total(storelab.sampled(directory))
    equal(storelab.total(got), want, "samples in the folder")


@test("E-04: a request over 4 MiB is split by its size before compression, and nothing is lost")
def sizes():
    directory = scratch.path("sizes")
    with peer.Peer() as p, workload(), \
            lab.Workload(lab.wl("storm"), "-r", "50", lab.wl("storm_child")):
        p.fault = peer.too_large(12 << 10)  # the store's own bound is lower still
        url = f"http://127.0.0.1:{p.port}"
        with agent(directory, "--otlp", url, "--pyroscope", url, "--send-size", "64") as a:
            a.wait_ready()
            wait_sent(a, "otlp")
            wait_sent(a, "pyroscope")
            a.stop()
            splits = a.log
        equal(p.bad, [], "what the rules refuse")
        for form, name in (("otlp", "process.executable.name"), ("pyroscope", "comm")):
            check_equal(directory, storelab.arrived(p.series(form), "samples", name), "samples",
                        form)
    check("refused" not in splits, splits)


@test("N-01: every dress of rate limiting is waited out; refusals are set aside; each is counted")
def answers():
    cases = {  # fault -> whether it comes through once the store is well
        "429 without a time": (peer.status(429), True),
        "429 with seconds": (peer.status(429, Retry_After="1"), True),
        "429 with a date": (peer.retry_date(2), True),
        "422 resource_exhausted": (peer.status(422, b"resource_exhausted: slow down"), True),
        "500 ResourceExhausted": (peer.status(500, b"code = ResourceExhausted"), True),
        "500": (peer.status(500), True),
        "503": (peer.status(503), True),
        "401": (peer.status(401), True),
        "403": (peer.status(403), True),
        "404": (peer.status(404), True),
        "302": (peer.status(302, Location="http://127.0.0.1:9/"), True),
        "200 with garbage": (peer.garbage, True),
        "an endless answer": (peer.endless, True),
        "a reset": (peer.cut, True),
        "400": (peer.status(400, b"bad"), False),
        "422": (peer.status(422, b"bad"), False),
    }
    directory = scratch.path("answers")
    with peer.Peer() as p:
        p.fault = peer.status(503)
        with agent(directory, "--otlp", f"http://127.0.0.1:{p.port}", window="1s") as a:
            a.wait_ready()
            for what, (fault, through) in cases.items():
                before, p.fault, n = a.metrics(), fault, p.requests
                agentlab.wait_for(lambda n=n: p.requests >= n + 2, 60, f"two requests: {what}",
                                  lambda: a.log)
                during = a.metrics()
                if through:
                    equal(during["sonde_sink_samples_total[otlp]"],
                          before["sonde_sink_samples_total[otlp]"], f"{what}: nothing was taken")
                    equal(during["sonde_sink_refused_total[otlp]"],
                          before["sonde_sink_refused_total[otlp]"], f"{what}: nothing refused")
                else:
                    a.wait_metric("sonde_sink_refused_total[otlp]",
                                  before["sonde_sink_refused_total[otlp]"] + 1)
            p.fault = None
            agentlab.wait_for(lambda: a.metrics()["sonde_sink_waiting_windows[otlp]"] <= 1, 120,
                              "the backlog is sent", lambda: (a.page(), a.log))
            note(a.log)
            a.stop()
        want, got = storelab.sampled(directory), storelab.arrived(
            p.series("otlp"), "samples", "process.executable.name")
        missing, _ = storelab.compare(want, got, storelab.waiting(directory))
        dead = sum(storelab.pprofread.load(os.path.join(d, f)).total(0)
                   for d, _, files in os.walk(f"{directory}/spool/dead") for f in files)
        note(f"sampled {storelab.total(want)}, delivered {storelab.total(got)}, missing {missing}, "
             f"set aside {dead}")
        equal(missing, dead, "what is missing is what was set aside")


@test("a poisoned series blocks nobody: it alone is set aside, the others arrive")
def poison():
    def refuses(handler, form, data):
        series = form[1](handler.headers, data)
        if any("poison" in s.labels.get("service.name", "") for s in series):
            handler.answer(500)
            return True
        return False
    directory, program = scratch.path("poison"), scratch.path("poison-me")
    with open(program, "wb") as f, open(lab.wl(PROGRAM), "rb") as g:
        f.write(g.read())
    os.chmod(program, 0o755)
    with peer.Peer() as p, workload(), lab.Workload(program, "-n", "1"):
        p.fault = refuses
        with agent(directory, "--otlp", f"http://127.0.0.1:{p.port}", "--send-retry-max", "0.1s",
                   window="4s") as a:
            a.wait_ready()
            wait_sent(a, "otlp", 2, 120)
            a.stop()
            log = a.log
        got = storelab.arrived(p.series("otlp"), "samples", "process.executable.name")
    programs = {program for _, program in got}
    check(PROGRAM in programs and not any("poison" in x for x in programs), sorted(programs))
    dead = os.listdir(f"{directory}/spool/dead")
    check(dead, "nothing was set aside")
    for name in dead:
        x = storelab.pprofread.load(f"{directory}/spool/dead/{name}")
        check({s.labels["comm"] for s in x.samples} == {"poison-me"},
              f"{name}: {({s.labels['comm'] for s in x.samples})}")
        check(any("HTTP 500" in c for c in x.comments), x.comments)
    check("set aside" in log, log)


@test("N-02: no server at start, then one; wrong settings are found at start with status 2")
def late_server():
    directory, port = scratch.path("late"), agentlab.free_port()
    with agent(directory, "--otlp", f"http://127.0.0.1:{port}") as a:
        a.wait_log("sink otlp: .*connect.*tried again")
        with peer.Peer(port=port) as p:
            wait_sent(a, "otlp")
            check(p.series("otlp"), "nothing came")
        a.stop()
    for args, says in (
            (["--otlp", ""], "does not begin with http"),
            (["--otlp", "collector:4318"], "does not begin with http"),
            (["--otlp", "http://:1"], "names no host"),
            (["--otlp", "http://u:p@h/"], "otlp-basic-file"),
            (["--parca", "http://h/x y"], "is no address"),
            (["--otlp", "http://h", "--otlp-bearer-file", "/nowhere/token"], "/nowhere/token: No"),
            (["--export-dir", "relative"], "no absolute path"),
            (["--labels", "node=a"], "labels: "),
            (["--labels", "a-b=c"], "labels: ")):
        status, lines = agentlab.refused(scratch.path("refused"), *args)
        check(status == 2 and any(says in l for l in lines), f"{args}: {status} {lines}")


@test("N-05: prefix, tenant, token replaced while it runs, 415 to gzip, own authority, mutual TLS")
def settings():
    directory, token = scratch.path("settings"), scratch.path("token")
    ca, key = storelab.certificate(scratch, "good")
    client, client_key = storelab.certificate(scratch, "client")
    tls = peer.tls_context(ca, key)
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_verify_locations(client)
    with open(token, "w") as f:
        f.write("first\n")

    def plain_only(handler, form, data):
        if handler.headers["Content-Encoding"]:
            handler.answer(415)
            return True
        return False
    with peer.Peer(tls=tls, prefix="/pyro") as p:
        p.fault = plain_only
        url = f"https://localhost:{p.port}/pyro/"
        with agent(directory, "--otlp", url, "--otlp-tenant", "team-a", "--otlp-bearer-file", token,
                   "--tls-ca", ca, "--tls-cert", client, "--tls-key", client_key) as a:
            a.wait_ready()
            wait_sent(a, "otlp", 1)
            equal(p.headers["X-Scope-OrgID"], "team-a", "tenant")
            equal(p.headers["Authorization"], "Bearer first", "token")
            with open(token, "w") as f:
                f.write("second\n")
            agentlab.wait_for(lambda: p.headers["Authorization"] == "Bearer second", 30,
                              "the new token")
            a.stop()
            equal(a.problems(), [], "warnings")
            check("first" not in a.log and "second" not in a.log, "the token is in the log")
        equal(p.bad, [], "what the rules refuse")


def one_proxy():
    """A CONNECT proxy that counts; it leads to one address only."""
    import socket
    import threading

    class Proxy:
        count = 0
    listener = socket.create_server(("127.0.0.1", 0))
    proxy = Proxy()
    proxy.port = listener.getsockname()[1]

    def pump(a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
        except OSError:
            pass
        b.close()

    def serve():
        while True:
            client, _ = listener.accept()
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(4096)
            proxy.count += 1
            port = int(head.split()[1].rsplit(b":", 1)[1])
            server = socket.create_connection(("127.0.0.1", port))
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            for pair in ((client, server), (server, client)):
                threading.Thread(target=pump, args=pair, daemon=True).start()
    threading.Thread(target=serve, daemon=True).start()
    return proxy


@test("N-05: proxies are obeyed where they should be; certificates: each fault is told apart")
def proxies_and_certificates():
    ca, key = storelab.certificate(scratch, "proxied")
    proxy = one_proxy()
    there = f"http://127.0.0.1:{proxy.port}"
    with peer.Peer(tls=peer.tls_context(ca, key)) as p:
        url = f"https://localhost:{p.port}"
        for env, args, through in (
                ({"https_proxy": there}, [], True),
                ({"https_proxy": there, "no_proxy": "localhost"}, [], False),
                ({}, ["--proxy", there], True),
                ({"https_proxy": there}, ["--proxy", ""], False),
                ({}, ["--proxy", there, "--no-proxy", "localhost"], False)):
            before = proxy.count
            with agent(scratch.path(f"proxy{len(args)}{len(env)}{through}"), "--otlp", url,
                       "--tls-ca", ca, *args, env={**os.environ, **env}) as a:
                a.wait_ready()
                wait_sent(a, "otlp", 1)
                check("proxy" in a.log, "the proxy is not shown at start")
                a.stop()
            equal(proxy.count > before, through, f"{env} {args}: through the proxy")
    old = storelab.certificate(scratch, "old", year=2020)
    other = storelab.certificate(scratch, "other", host="DNS:elsewhere")
    for what, (crt, k), args, says in (
            ("unknown authority", (ca, key), [], "self.signed certificate"),
            ("another name", other, ["--tls-ca", other[0]], "no alternative certificate subject"),
            ("expired", old, ["--tls-ca", old[0]], "certificate has expired")):
        with peer.Peer(tls=peer.tls_context(crt, k)) as p:
            with agent(scratch.path(what.replace(" ", "")), "--otlp",
                       f"https://localhost:{p.port}", *args) as a:
                said = a.wait_log(f"sink otlp: .*({says}).*tried again", 30).group(0)
                note(f"{what}: {said}")
                equal(p.series("otlp"), [], "taken")
                a.stop()


@test("N-03, N-04: a dead sink holds up no other; on return its windows come oldest first, in order")
def dead_sink():
    directory = scratch.path("dead")
    with peer.Peer() as dead, peer.Peer() as well:
        dead.fault = peer.half_open
        with agent(directory, "--otlp", f"http://127.0.0.1:{dead.port}", "--pyroscope",
                   f"http://127.0.0.1:{well.port}", "--send-timeout", "2s") as a:
            a.wait_ready()
            wait_sent(a, "pyroscope", 6)
            equal(dead.series("otlp"), [], "taken by the dead one")
            dead.fault = None
            wait_sent(a, "otlp", 6)
            a.stop()
        times = [s.time_ns for s in dead.series("otlp")]
        equal(times, sorted(times), "order of windows")
        missing, _ = storelab.compare(storelab.sampled(directory), storelab.arrived(
            dead.series("otlp"), "samples", "process.executable.name"),
            storelab.waiting(directory))
        equal(missing, 0, "missing")


@test("N-04: the spool keeps its cap, drops the oldest, and counts them")
def cap():
    directory, port = scratch.path("cap"), agentlab.free_port()
    with workload(), agent(directory, "--otlp", f"http://127.0.0.1:{port}", "--spool-size", "1",
                           collect="0.2s", window="1s") as a:
        a.wait_ready()
        fill(directory)
        a.stop()
    with workload(), agent(directory, "--otlp", f"http://127.0.0.1:{port}", "--spool-size", "1",
                           window="1s") as a:
        a.wait_ready()
        a.wait_metric("sonde_sink_dropped_cap_total[otlp]", 1)
        m = a.metrics()
        check(m["sonde_spool_bytes"] <= 1 << 20, m["sonde_spool_bytes"])
        a.stop()


def fill(directory):
    """Windows that have been waiting since yesterday, under numbers below the live ones."""
    spool = f"{directory}/spool"
    agentlab.wait_for(lambda: any(n.endswith(".chunk") for n in os.listdir(spool)), 30, "a window")
    chunk = sorted(n for n in os.listdir(spool) if n.endswith(".chunk"))[0]
    with open(f"{spool}/{chunk}", "rb") as f:
        data = f.read()
    for n in range((2 << 20) // len(data) + 2):
        with open(f"{spool}/{0:020d}-{n + 1:020d}.chunk", "wb") as f:
            f.write(data)


if __name__ == "__main__":
    run()
