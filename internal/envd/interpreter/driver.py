"""Runs snippets in one namespace. Code comes as JSON lines on descriptor 4,
what it yields goes out as JSON lines on descriptor 3."""
import ast, asyncio, base64, builtins, inspect, io, json, linecache, os, re, signal, sys, traceback, types

os.set_inheritable(3, False)
os.set_inheritable(4, False)
_words = os.fdopen(3, "w", encoding="utf-8")
_code = os.fdopen(4, "r", encoding="utf-8")
sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")
sys.stderr.reconfigure(line_buffering=True, errors="backslashreplace")
sys.argv = [""]
sys.path.insert(0, "")
_main = types.ModuleType("__main__")
sys.modules["__main__"] = _main
_space = _main.__dict__
_loop = None
_FORMS = [("html", "_repr_html_"), ("markdown", "_repr_markdown_"), ("svg", "_repr_svg_"), ("png", "_repr_png_"),
          ("jpeg", "_repr_jpeg_"), ("pdf", "_repr_pdf_"), ("latex", "_repr_latex_"), ("json", "_repr_json_"),
          ("javascript", "_repr_javascript_")]
_MIMES = {"text/plain": "text", "text/html": "html", "text/markdown": "markdown", "image/svg+xml": "svg",
          "image/png": "png", "image/jpeg": "jpeg", "application/pdf": "pdf", "text/latex": "latex",
          "application/json": "json", "application/javascript": "javascript"}


def _say(**event):
    sys.stdout.flush()
    sys.stderr.flush()
    _words.write(json.dumps(event, default=repr) + "\n")
    _words.flush()


def _plain(value):
    text = repr(value)
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    return text


def _forms(value):
    out = {}
    bundle = getattr(value, "_repr_mimebundle_", None)
    if callable(bundle) and not inspect.isclass(value):
        data = bundle()
        data = data[0] if isinstance(data, tuple) else data
        for mime, content in (data or {}).items():
            out[_MIMES.get(mime, mime)] = content
    for name, method in _FORMS:
        form = getattr(value, method, None)
        if name in out or not callable(form) or inspect.isclass(value):
            continue
        try:
            content = form()
        except Exception:
            continue
        if content is not None:
            out[name] = content[0] if isinstance(content, tuple) else content
    for name, content in out.items():
        if isinstance(content, bytes):
            out[name] = base64.b64encode(content).decode()
    out.setdefault("text", _plain(value))
    return out


def _show(value, main):
    _say(type="result", is_main_result=main, **_forms(value))


def display(*values, **_):
    for value in values:
        _show(value, False)


builtins.display = display


def _figures():
    plot = sys.modules.get("matplotlib.pyplot")
    if plot is None:
        return
    for number in plot.get_fignums():
        figure, image = plot.figure(number), io.BytesIO()
        figure.savefig(image, format="png", bbox_inches="tight")
        _say(type="result", is_main_result=False, text=repr(figure), png=base64.b64encode(image.getvalue()).decode())
    plot.close("all")


def _magic(code):
    """Turns the notebook lines !command and %pip, %cd, %env into Python."""
    def line(m):
        indent, mark, rest = m.groups()
        if mark == "!" or rest.split(" ")[0] in ("pip", "conda"):
            rest = sys.executable + " -m " + rest if mark == "%" and rest.startswith("pip") else rest
            return indent + "__import__('subprocess').run(%r, shell=True)" % rest + ";None"
        word, _, arg = rest.partition(" ")
        if word == "cd":
            return indent + "__import__('os').chdir(__import__('os').path.expanduser(%r))" % (arg.strip() or "~")
        if word == "env" and "=" in arg:
            return indent + "__import__('os').environ.__setitem__(*%r)" % (arg.split("=", 1),)
        return indent + "pass"
    return re.sub(r"(?m)^([ \t]*)([!%])(?!=)(\S.*)$", line, code)


def _parse(code, name):
    try:
        return ast.parse(code, name), code
    except SyntaxError:
        changed = _magic(code)
        if changed == code:
            raise
        return ast.parse(changed, name), changed


def _exec(node, name, mode):
    global _loop
    compiled = compile(node, name, mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    value = eval(compiled, _space)
    if compiled.co_flags & inspect.CO_COROUTINE:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            asyncio.set_event_loop(_loop)
        value = _loop.run_until_complete(value)
    return value


def _run(code, name):
    tree, code = _parse(code, name)
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    quiet = code.rstrip().endswith(";")
    if tree.body:
        _exec(tree, name, "exec")
    if last is not None:
        value = _exec(ast.Expression(last.value), name, "eval")
        if value is not None and not quiet:
            _space["_"] = value
            _show(value, True)


def _fail(error):
    trace = error.__traceback__
    while trace is not None and not trace.tb_frame.f_code.co_filename.startswith("<cell "):
        trace = trace.tb_next
    lines = traceback.format_exception(type(error), error, trace)
    _say(type="error", name=type(error).__name__, value=str(error), traceback="".join(lines))


def _serve():
    count = 0
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in _code:
        request = json.loads(line)
        env = request.get("env") or {}
        before = {k: os.environ.get(k) for k in env}
        os.environ.update(env)
        count += 1
        try:
            try:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                _run(request["code"], "<cell %d>" % count)
                _figures()
            finally:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
        except BaseException as error:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            _fail(error)
        for k, v in before.items():
            if v is None:
                os.environ.pop(k, None)
            else:
                os.environ[k] = v
        _say(type="end")


_space["__builtins__"] = builtins
_serve()
