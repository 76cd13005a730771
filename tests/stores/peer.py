# SPDX-License-Identifier: Apache-2.0
"""A store that decodes and checks strictly all three forms, keeps what it took, and can be made to
misbehave in each way that stores and networks do. One port; a mode that a test sets at any time."""

import email.utils
import gzip
import http.server
import os
import socket
import socketserver
import ssl
import struct
import threading
import time

import otlpcheck
import rules
import schema

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OTLP = schema.Schema(f"{ROOT}/proto/schema/otlp_profiles.proto")
PUSH = schema.Schema(f"{ROOT}/proto/schema/push.proto")

GRPC_OK = b"\x80" + struct.pack(">I", 16) + b"grpc-status: 0\r\n"


def take_otlp(headers, body):
    rules.need(headers["Content-Type"] == "application/x-protobuf", "content type")
    problems = otlpcheck.check(body)
    rules.need(not problems, f"otlpcheck: {problems[:3]}")
    return rules.check_otlp(OTLP.decode(body, "ExportProfilesServiceRequest"))


def take_pyroscope(headers, body):
    rules.need(headers["Content-Type"] == "application/proto", "content type")
    rules.need(headers["Content-Encoding"] is None, "compressed twice")
    return rules.check_pyroscope(PUSH.decode(body, "PyroscopePush"))


def take_parca(headers, body):
    rules.need(headers["Content-Type"] == "application/grpc-web+proto", "content type")
    message = rules.grpc_web_message(body)
    return rules.check_parca(PUSH.decode(message, "ParcaWriteRaw"), len(message))


# path -> name, taker, content type and body of a success
FORMS = {
    "/v1development/profiles": ("otlp", take_otlp, "application/x-protobuf", b""),
    "/push.v1.PusherService/Push": ("pyroscope", take_pyroscope, "application/proto", b""),
    "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw":
        ("parca", take_parca, "application/grpc-web+proto", GRPC_OK),
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *_):
        pass

    def answer(self, status, kind="text/plain", body=b"", **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        self.wfile.write(body)

    def body(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.peer.wire_bytes += len(data)
        return gzip.decompress(data) if self.headers["Content-Encoding"] == "gzip" else data

    def do_POST(self):
        peer = self.server.peer
        form = FORMS.get(self.path[len(peer.prefix):]) if self.path.startswith(peer.prefix) else None
        if not form:
            self.answer(404)
            return
        with peer.lock:
            peer.requests += 1
            peer.headers = dict(self.headers)
            fault = peer.fault
        data = self.body()
        if fault and fault(self, form, data):
            return
        if peer.lazy:
            peer.later(form, self.headers, data)
            self.answer(200, form[2], form[3])
            return
        try:
            series = form[1](self.headers, data)
        except (schema.Bad, OSError, EOFError) as why:
            with peer.lock:
                peer.bad.append(f"{form[0]}: {why}")
            self.answer(400, "text/plain", str(why).encode())
            return
        peer.keep(form[0], series)
        self.answer(200, form[2], form[3])


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def handle_error(self, *_):
        pass  # peers that go away are what some tests are about

    def get_request(self):
        connection, address = super().get_request()
        if self.peer.tls:  # the handshake is the handler thread's, so that nobody blocks
            connection.settimeout(20)
            connection = self.peer.tls.wrap_socket(connection, server_side=True,
                                                   do_handshake_on_connect=False)
        self.peer.connections.append(connection)
        return connection, address


class Peer:
    """fault: None, or a function(handler, form, data) that answers and returns True. lazy: takes
    all, and looks at it in look(), for tests that want a fast store."""

    def __init__(self, tls=None, port=0, prefix="", lazy=False):
        self.lazy, self.raw, self.connections = lazy, [], []
        self.lock = threading.Lock()
        self.tls, self.prefix, self.fault = tls, prefix, None
        self.requests = self.wire_bytes = 0
        self.bad, self.headers = [], {}
        self.taken = []  # (form, Series)
        self.port = port
        self.server = None
        self.start()

    def start(self):
        self.server = Server(("127.0.0.1", self.port), Handler)
        self.server.peer = self
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None
        for connection in self.connections:  # those that are kept alive, too
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.connections = []

    def later(self, form, headers, data):
        with self.lock:
            self.raw.append((form, headers, data))

    def look(self):
        for form, headers, data in self.raw:
            try:
                self.keep(form[0], form[1](headers, data))
            except (schema.Bad, OSError, EOFError) as why:
                self.bad.append(f"{form[0]}: {why}")
        self.raw = []

    def keep(self, form, series):
        with self.lock:
            self.taken += [(form, s) for s in series]

    def series(self, form):
        with self.lock:
            return [s for f, s in self.taken if f == form]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


# ---- faults ----

def status(code, body=b"", **headers):
    def fault(handler, form, data):
        handler.answer(code, "text/plain", body, **headers)
        return True
    return fault


def too_large(limit):
    """413 for what is larger than the limit, uncompressed."""
    def fault(handler, form, data):
        if len(data) > limit:
            handler.answer(413)
        return len(data) > limit
    return fault


def retry_date(seconds):
    def fault(handler, form, data):
        handler.answer(429, Retry_After=email.utils.formatdate(time.time() + seconds, usegmt=True))
        return True
    return fault


def garbage(handler, form, data):
    handler.answer(200, "text/html", b"<html>log in to the wireless network</html>")
    return True


def endless(handler, form, data):
    """An answer that is far too long."""
    handler.answer(200, form[2], os.urandom(1 << 20))
    return True


def slow_loris(handler, form, data):
    """An answer that comes a byte at a time."""
    handler.connection.settimeout(5)
    try:
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n" * 40:
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()
            time.sleep(0.5)
    except OSError:
        pass
    handler.close_connection = True
    return True


def half_open(handler, form, data):
    """The request is read, and nothing ever comes back."""
    handler.connection.settimeout(40)
    try:
        handler.connection.recv(1)
    except OSError:
        pass
    handler.close_connection = True
    return True


def cut(handler, form, data):
    """The connection is reset in place of an answer; the data may have been kept."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    return True


def kept_but_cut(handler, form, data):
    """Worst of all: the data is kept, and the answer is lost."""
    handler.server.peer.later(form, handler.headers, data)
    return cut(handler, form, data)


def tls_context(certificate, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
