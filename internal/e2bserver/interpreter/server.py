"""The code interpreter of a sandbox: E2B's protocol on port 49999, contexts as
processes of their own. Standard library only."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HERE = os.path.dirname(os.path.abspath(__file__))
HOME = "/home/user"
LIMIT = 64 << 20
ALIASES = {"py": "python", "python3": "python", "js": "javascript", "node": "javascript", "sh": "bash"}


class Kernel:
    """A context: a process that keeps its variables between runs."""

    def __init__(self, language, cwd):
        self.id, self.language, self.cwd = str(uuid.uuid4()), language, cwd
        self.lock = threading.Lock()
        self.process = None
        self.count = 0

    def start(self, env):
        ask_r, ask_w = os.pipe()
        tell_r, tell_w = os.pipe()
        program = [sys.executable, "-u", f"{HERE}/kernel.py"] if self.language == "python" else ["node", f"{HERE}/kernel.mjs"]
        ready = f'exec 3<&{ask_r} 4>&{tell_w}; exec "$@"'
        self.process = subprocess.Popen(
            ["bash", "-c", ready, "kernel", *program], cwd=self.cwd, env=env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=(ask_r, tell_w), start_new_session=True)
        os.close(ask_r)
        os.close(tell_w)
        self.ask, self.tell = ask_w, tell_r

    def stop(self):
        if self.process is not None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
            for fd in (self.ask, self.tell):
                os.close(fd)
            self.process = None

    def interrupt(self, how=signal.SIGINT):
        process = self.process
        if process is not None:
            try:
                os.killpg(process.pid, how)
            except ProcessLookupError:
                pass

    def kill(self):
        self.interrupt(signal.SIGKILL)

    def run(self, code, env, extra, emit):
        with self.lock:
            if self.language == "bash":
                return self.shell(code, {**env, **extra}, emit)
            if self.process is None or self.process.poll() is not None:
                self.stop()
                self.start(env)
            mark = f"\0{uuid.uuid4()}\0"
            request = json.dumps({"code": code, "env": extra, "mark": mark}) + "\n"
            threading.Thread(target=self.send, args=(request.encode(),), daemon=True).start()
            self.follow(mark.encode(), emit)

    def send(self, data):
        try:
            while data:
                data = data[os.write(self.ask, data):]
        except OSError:
            pass

    def follow(self, mark, emit):
        """Passes output and events on until the run is over or the process is."""
        out, err = self.process.stdout.fileno(), self.process.stderr.fileno()
        names, rest, open_ends = {out: "stdout", err: "stderr"}, {out: b"", err: b"", self.tell: b""}, {out, err, self.tell}
        while open_ends:
            for fd in select.select(list(open_ends), [], [])[0]:
                data = os.read(fd, 65536)
                if not data:
                    emit({"type": "unexpected_end_of_execution"})
                    self.stop()
                    return
                rest[fd] += data
                if fd == self.tell:
                    *lines, rest[fd] = rest[fd].split(b"\n")
                    for line in lines:
                        event = json.loads(line)
                        if event["type"] == "done":
                            open_ends.discard(fd)
                        else:
                            emit(event)
                    continue
                done = mark in rest[fd]
                text, rest[fd] = (rest[fd].replace(mark, b""), b"") if done else hold(rest[fd])
                if done:
                    open_ends.discard(fd)
                if text:
                    emit({"type": names[fd], "text": text.decode(errors="replace"), "timestamp": time.time_ns()})

    def shell(self, code, env, emit):
        self.count += 1
        emit({"type": "number_of_executions", "execution_count": self.count})
        self.process = p = subprocess.Popen(["bash", "-c", code], cwd=self.cwd, env=env, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        names = {p.stdout.fileno(): "stdout", p.stderr.fileno(): "stderr"}
        while names:
            for fd in select.select(list(names), [], [])[0]:
                data = os.read(fd, 65536)
                if not data:
                    del names[fd]
                else:
                    emit({"type": names[fd], "text": data.decode(errors="replace"), "timestamp": time.time_ns()})
        code = p.wait()
        self.process = None
        if code != 0:
            emit({"type": "error", "name": "CommandFailed", "value": f"exit status {code}", "traceback": f"exit status {code}"})


def hold(data):
    """Keeps back what may be the beginning of a mark or of a character."""
    cut = data.rfind(b"\0")
    if cut >= 0:
        return data[:cut], data[cut:]
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0xC0:
            size = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return (data[:-back], data[-back:]) if size > back else (data, b"")
        if byte < 0x80:
            break
    return data, b""


class Contexts:
    def __init__(self):
        self.lock, self.all, self.defaults = threading.Lock(), {}, {}

    def make(self, language, cwd):
        language = ALIASES.get(language, language)
        if language not in ("python", "javascript", "bash") or language == "javascript" and not shutil.which("node"):
            raise Refused(400, f"language {language!r} is not available in this sandbox")
        if not os.path.isdir(cwd):
            raise Refused(400, f"folder {cwd!r} does not exist")
        kernel = Kernel(language, cwd)
        with self.lock:
            self.all[kernel.id] = kernel
        return kernel

    def get(self, id):
        with self.lock:
            if id not in self.all:
                raise Refused(404, f"Context {id} not found")
            return self.all[id]

    def default(self, language):
        language = ALIASES.get(language, language)
        with self.lock:
            kernel = self.defaults.get(language)
            if kernel is not None and kernel.id in self.all:
                return kernel
        made = self.make(language, HOME)
        with self.lock:
            kernel = self.defaults.get(language)
            if kernel is not None and kernel.id in self.all:  # made by another request meanwhile
                del self.all[made.id]
                return kernel
            self.defaults[language] = made
            return made

    def remove(self, id):
        kernel = self.get(id)
        with self.lock:
            self.all.pop(id, None)
        kernel.stop()


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


contexts = Contexts()


def environment(token):
    """The variables of the sandbox; envd also says whether the caller may run code."""
    request = urllib.request.Request("http://127.0.0.1:49983/envs", headers={"X-Access-Token": token or ""})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=10) as answer:
            return {**os.environ, **json.load(answer)}
    except urllib.error.HTTPError as e:
        raise Refused(e.code, "the access token is missing or wrong")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        size = int(self.headers.get("Content-Length") or 0)
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            data = b""
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                data += self.rfile.read(size)
                self.rfile.readline()
                if size == 0:
                    break
                if len(data) > LIMIT:
                    raise Refused(413, "the request is too large")
        elif size > LIMIT:
            raise Refused(413, "the request is too large")
        else:
            data = self.rfile.read(size)
        try:
            return json.loads(data) if data else {}
        except ValueError:
            raise Refused(400, "the body is not valid JSON")

    def answer(self, status, value=None):
        data = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def serve(self, method):
        try:
            self.route(method, [p for p in self.path.split("?")[0].split("/") if p])
        except Refused as e:
            self.answer(e.status, {"code": e.status, "message": str(e)})
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def route(self, method, path):
        match (method, *path):
            case ("GET", "health"):
                self.answer(200, "OK")
            case ("POST", "execute"):
                self.execute(self.body())
            case ("GET", "contexts"):
                self.answer(200, [show(k) for k in contexts.all.values()])
            case ("POST", "contexts"):
                body = self.body()
                self.answer(200, show(contexts.make(body.get("language") or "python", body.get("cwd") or HOME)))
            case ("DELETE", "contexts", id):
                contexts.remove(id)
                self.answer(204)
            case ("POST", "contexts", id, "restart"):
                kernel = contexts.get(id)
                kernel.stop()
                self.answer(200, show(kernel))
            case _:
                raise Refused(404, f"there is no {method} {self.path}")

    def execute(self, body):
        if body.get("context_id") and body.get("language"):
            raise Refused(400, "only one of context_id and language may be given")
        env = environment(self.headers.get("X-Access-Token"))
        kernel = contexts.get(body["context_id"]) if body.get("context_id") else contexts.default(body.get("language") or "python")
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        self.end_headers()
        gone, done = threading.Event(), threading.Event()

        def emit(event):
            data = json.dumps(event).encode() + b"\n"
            try:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            except OSError:
                gone.set()

        threading.Thread(target=self.watch, args=(kernel, gone, done), daemon=True).start()
        try:
            kernel.run(body.get("code") or "", env, body.get("env_vars") or {}, emit)
        finally:
            done.set()
        emit({"type": "end_of_execution"})
        self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True

    def watch(self, kernel, gone, done):
        """Ends a run whose caller has gone away: interrupts, and then by force."""
        while not done.is_set() and not gone.is_set():
            if select.select([self.connection], [], [], 0.5)[0]:
                gone.set()
        for _ in range(40):
            if done.is_set():
                return
            kernel.interrupt()
            done.wait(0.25)
        if not done.is_set():
            kernel.kill()

    def do_GET(self):
        self.serve("GET")

    def do_POST(self):
        self.serve("POST")

    def do_DELETE(self):
        self.serve("DELETE")


def show(kernel):
    return {"id": kernel.id, "language": kernel.language, "cwd": kernel.cwd}


if __name__ == "__main__":
    ThreadingHTTPServer.daemon_threads = True
    ThreadingHTTPServer(("127.0.0.1", 49999), Handler).serve_forever()
