"""Runs are data: the viewer executes nothing it reads, and talks to nobody but this machine."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = sorted(path for room in ("app", "inspector") for path in (ROOT / room).rglob("*.py"))
BROWSER = sorted(
    path for path in (ROOT / "app").rglob("*") if path.suffix in (".js", ".html", ".css", ".mjs")
)
UNSAFE_MODULES = {
    "pickle",
    "cPickle",
    "_pickle",
    "dill",
    "cloudpickle",
    "joblib",
    "shelve",
    "marshal",
}
PARALLEL = "tuning.py"  # runs functions of ours in processes of ours; reads no file
UNSAFE_FUNCTIONS = {"eval", "exec", "compile", "__import__"}
UNSAFE_METHODS = {"eval", "read_pickle", "to_pickle", "system", "popen"}
UNSAFE_KEYWORDS = {"allow_pickle", "unsafe_allow_html", "shell", "unsafe_allow_javascript"}


def offences(source: str) -> list[str]:
    """List what a Python source may not do, each with its line."""
    found = []
    for node in ast.walk(ast.parse(source)):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            names = []
        found += [f"{line}: imports {n}" for n in names if n.split(".")[0] in UNSAFE_MODULES]
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        if (
            (isinstance(function, ast.Name) and function.id in UNSAFE_FUNCTIONS)
            or (isinstance(function, ast.Attribute) and function.attr in UNSAFE_METHODS)
            or ast.unparse(function) == "torch.load"
        ):
            found.append(f"{line}: calls {ast.unparse(function)}()")
        found += [
            f"{line}: {keyword.arg}=True"
            for keyword in node.keywords
            if keyword.arg in UNSAFE_KEYWORDS
            and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
        ]
    return found


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: str(path.relative_to(ROOT)))
def test_app_and_inspector_execute_no_data(path: Path):
    found = offences(path.read_text(encoding="utf-8"))
    if path.name == PARALLEL:
        found = [offence for offence in found if not offence.endswith("imports joblib")]
        assert "from joblib import Parallel, delayed" in path.read_text(encoding="utf-8")
    assert not found


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "torch.load('x.pt')",
        "eval('1')",
        "exec('x = 1')",
        "frame.eval('a + b')",
        "np.load('x.npy', allow_pickle=True)",
        "st.markdown(note, unsafe_allow_html=True)",
        "subprocess.run('ls', shell=True)",
    ],
)
def test_each_forbidden_thing_is_seen(source: str):
    assert offences(source)


def test_harmless_look_alikes_are_not_seen():
    assert not offences(
        "'never pickle'\nre.compile('a')\nloader.exec_module(m)\nf(allow_pickle=False)"
    )


@pytest.mark.parametrize("path", BROWSER, ids=lambda path: str(path.relative_to(ROOT)))
def test_browser_code_builds_no_markup_from_data_and_fetches_nothing(path: Path):
    text = path.read_text(encoding="utf-8")
    forbidden = r"\beval\(|new Function|innerHTML|outerHTML|insertAdjacentHTML|document\.write"
    assert not re.findall(forbidden, text)
    assert not re.findall(r"\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon|import\(|@import", text)
    addresses = re.findall(r"(?:https?:)?//[\w.-]+\.\w+", text)
    assert not [a for a in addresses if not a.endswith("www.w3.org")]


def test_the_server_listens_on_this_machine_only_and_reports_to_nobody():
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert config["server"]["address"] in ("127.0.0.1", "localhost", "::1")
    assert config["browser"]["gatherUsageStats"] is False
    assert config["server"].get("enableCORS", True) is True
    assert config["server"].get("enableXsrfProtection", True) is True
    assert config["server"]["headless"] is True
    assert config["server"]["showEmailPrompt"] is False  # else a first start waits for an answer
    assert config["server"]["fileWatcherType"] == "none"
    assert config["runner"]["magicEnabled"] is False


def test_the_server_is_configured_alike_wherever_it_is_started():
    shipped = (ROOT / "app" / "streamlit.toml").read_text(encoding="utf-8")
    assert shipped == (ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8")
