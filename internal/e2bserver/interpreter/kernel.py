"""One Python context: runs code sent as JSON lines on descriptor 3, tells what
came of it as JSON lines on descriptor 4. Descriptors 1 and 2 are the output of
the code; a mark closes them after each run."""

import ast
import base64
import io
import json
import linecache
import os
import signal
import sys
import traceback

requests = os.fdopen(3, "r", encoding="utf-8")
events = os.fdopen(4, "w", encoding="utf-8")
scope = {"__name__": "__main__", "__builtins__": __builtins__}
count = 0

FORMS = [
    ("_repr_html_", "html"), ("_repr_markdown_", "markdown"), ("_repr_svg_", "svg"), ("_repr_latex_", "latex"),
    ("_repr_json_", "json"), ("_repr_javascript_", "javascript"), ("_repr_png_", "png"), ("_repr_jpeg_", "jpeg"), ("_repr_pdf_", "pdf"),
]


def tell(**event):
    events.write(json.dumps(event, default=str) + "\n")
    events.flush()


def result_of(value, main):
    out = {"type": "result", "is_main_result": main, "text": repr(value)}
    for method, name in FORMS:
        form = getattr(type(value), method, None)
        if form is None:
            continue
        try:
            data = form(value)
        except Exception:
            continue
        if isinstance(data, bytes):
            data = base64.b64encode(data).decode()
        if data is not None:
            out[name] = data
    return out


def display(*values, **_):
    for value in values:
        tell(**result_of(value, False))


def figures():
    """Shows what matplotlib drew, if the code used it."""
    plt = sys.modules.get("matplotlib.pyplot")
    if plt is None:
        return
    for number in plt.get_fignums():
        figure = plt.figure(number)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", bbox_inches="tight")
        tell(type="result", is_main_result=False, text=repr(figure), png=base64.b64encode(buffer.getvalue()).decode())
    plt.close("all")


def run(code, env):
    global count
    count += 1
    tell(type="number_of_executions", execution_count=count)
    saved = dict(os.environ)
    os.environ.update(env)
    name = f"<cell {count}>"
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        tree = ast.parse(code, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), scope)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), name, "eval"), scope)
            if value is not None:
                scope["_"] = value
                tell(**result_of(value, True))
        figures()
    except BaseException as e:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        frames = traceback.extract_tb(e.__traceback__)
        inner = [f for f in frames if f.filename != __file__]
        text = "".join(["Traceback (most recent call last):\n"] + traceback.format_list(inner) + traceback.format_exception_only(type(e), e))
        tell(type="error", name=type(e).__name__, value=str(e), traceback=text)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.environ.clear()
        os.environ.update(saved)


signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the code, never for us
scope["display"] = display
for line in requests:
    request = json.loads(line)
    try:
        run(request["code"], request.get("env") or {})
    except KeyboardInterrupt:  # it came between two lines of ours
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    mark = request["mark"].encode()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.write(1, mark)
    os.write(2, mark)
    tell(type="done")
