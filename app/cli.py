"""The command `stepscope`: open the dashboard, solve a spec, look at and export runs."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app import (
    adjoints_command,
    ask_command,
    diagnose_command,
    experiment_command,
    pack_command,
    reference_command,
    report_command,
    spectrum_command,
    train_command,
    tune_command,
    work_precision_command,
)

HERE = Path(__file__).resolve().parent
RUNS_VARIABLE = "STEPSCOPE_RUNS"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code: 0 well, 1 failed, 2 wrongly asked."""
    arguments = parser().parse_args(argv)
    try:
        return arguments.do(arguments)
    except BrokenPipeError:  # the reader of our output has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyError as error:
        print(f"stepscope: {error.args[0] if error.args else error}", file=sys.stderr)
        return 1
    except (OSError, ValueError, TypeError, ModuleNotFoundError) as error:
        print(f"stepscope: {error}", file=sys.stderr)
        return 1


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = argparse.ArgumentParser(prog="stepscope", description=__doc__)
    commands = top.add_subparsers(required=True, metavar="command")

    app = commands.add_parser("app", help="open the dashboard")
    runs_argument(app)
    app.add_argument(
        "--problem", metavar="FILE.py:CLASS", help="your own problem, offered beside the others"
    )
    app.add_argument("--port", type=int, default=None, help="8501, or the next free one")
    app.add_argument(
        "--address", default="127.0.0.1", help="interface to listen on (default: only this machine)"
    )
    app.add_argument("--read-only", action="store_true", help="viewers may look, not run or delete")
    app.add_argument(
        "--open", type=Path, metavar="FILE", help="a packed run: unpacked, and shown first"
    )
    app.add_argument("--no-browser", action="store_true", help="do not open a browser")
    app.set_defaults(do=run_app)

    run = commands.add_parser("run", help="solve what a spec describes, and record it")
    run.add_argument(
        "spec",
        type=Path,
        help="JSON file, such as the `spec` of a run.json, or a file of equations such as "
        "dx = -x; - for standard input",
    )
    run.add_argument("--name", help="of the run's folder; made up if left out")
    run.add_argument("--note", default="", help="kept with the run")
    runs_argument(run)
    run.set_defaults(do=run_spec)

    describe = commands.add_parser("describe", help="print problems, methods, controllers as JSON")
    describe.add_argument("--snapshot", action="store_true", help="write the shipped copy instead")
    describe.set_defaults(do=run_describe)

    ls = commands.add_parser("ls", help="list the recorded runs")
    ls.add_argument("--json", action="store_true", help="one JSON object a line")
    runs_argument(ls)
    ls.set_defaults(do=run_ls)

    show = commands.add_parser("show", help="sum a run up")
    show.add_argument("run", help="id of a run, or path of its folder")
    runs_argument(show)
    show.set_defaults(do=run_show)

    export = commands.add_parser("export", help="write a run's tables as files others read")
    export.add_argument("run", help="id of a run, or path of its folder")
    export.add_argument(
        "--to",
        choices=("csv", "parquet", "tensorboard", "chrome"),
        default="csv",
        help="tables; or numbers of a training as event files, or its phases for Perfetto",
    )
    export.add_argument("--out", type=Path, help="folder to write to; RUN-export if left out")
    runs_argument(export)
    export.set_defaults(do=run_export)

    ask_command.add(commands, runs_argument)
    reference_command.add(commands)
    adjoints_command.add(commands)
    work_precision_command.add(commands, runs_argument)
    tune_command.add(commands, runs_argument)
    train_command.add(commands, runs_argument)
    experiment_command.add(commands, runs_argument)
    diagnose_command.add(commands, runs_argument, find)
    spectrum_command.add(commands, runs_argument, find)
    pack_command.add(commands, runs_argument, find)
    report_command.add(commands, runs_argument, find)

    doctor = commands.add_parser("doctor", help="say whether everything needed is there")
    runs_argument(doctor)
    doctor.set_defaults(do=run_doctor)
    return top


def runs_argument(command: argparse.ArgumentParser) -> None:
    """Add `--runs`."""
    command.add_argument(
        "--runs",
        type=Path,
        default=Path(os.environ.get(RUNS_VARIABLE) or "runs"),
        metavar="DIR",
        help="folder of the runs (default: $STEPSCOPE_RUNS, else ./runs)",
    )


def run_app(arguments: argparse.Namespace) -> int:
    """Replace this process by the server."""
    env = os.environ | {RUNS_VARIABLE: str(arguments.runs.absolute())}
    if arguments.problem:
        file, _, name = arguments.problem.rpartition(":")
        path = Path(file).expanduser().absolute()
        if not name or not path.is_file():
            raise ValueError(f"--problem {arguments.problem}: must be path/to/file.py:ClassName")
        env["STEPSCOPE_PROBLEM"] = f"{path}:{name}"
    if arguments.read_only:
        env["STEPSCOPE_READ_ONLY"] = "1"
    if arguments.open is not None:
        from inspector.unpacking import unpack

        env["STEPSCOPE_SHOW"] = unpack(arguments.open, arguments.runs, another=True).name
        print(f"{arguments.open}: shown as the run {env['STEPSCOPE_SHOW']}")
    options = streamlit_options()
    options["server.address"] = arguments.address
    options["server.headless"] = arguments.no_browser
    if arguments.port is not None:
        options["server.port"] = arguments.port
    command = [sys.executable, "-m", "streamlit", "run", str(HERE / "main.py")]
    for name, value in options.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        command += [f"--{name}={text}"]
    sys.stdout.flush()
    os.execve(sys.executable, command, env)
    raise AssertionError("execve does not return")


def streamlit_options() -> dict[str, Any]:
    """Return the settings the server needs wherever it is started, by their dotted names."""
    import tomllib

    text = (HERE / "streamlit.toml").read_text("utf-8")
    flat: dict[str, Any] = {}

    def walk(prefix: str, table: dict[str, Any]) -> None:
        for key, value in table.items():
            if isinstance(value, dict):
                walk(f"{prefix}{key}.", value)
            else:
                flat[prefix + key] = value

    walk("", tomllib.loads(text))
    return flat


def run_spec(arguments: argparse.Namespace) -> int:
    """Solve and record a spec; prints one line that sums it up."""
    text = sys.stdin.read() if str(arguments.spec) == "-" else arguments.spec.read_text("utf-8")
    spec = read_spec(text)
    spec = spec.get("spec", spec)  # a whole run.json will do
    from app.worker import STUDIES, record, record_comparison, record_study
    from app.workers import new_run_id
    from inspector import run_path

    name = arguments.name or new_run_id(str(spec.get("problem", "run")))
    path = run_path(arguments.runs, name)
    if path.exists():
        raise ValueError(f"--name {name}: there is such a run in {arguments.runs} already")
    if spec.get("kind") == "adjoints":
        entries = record_comparison(spec, path, note=arguments.note)
        print(f"{path}: {entries} comparisons of gradient modes")
        return 0
    if spec.get("kind") in STUDIES:
        entries = record_study(spec, path, note=arguments.note)
        print(f"{path}: {entries} settings")
        return 0
    if spec.get("kind") == "training":
        return train_command.do(spec, path, arguments.note)
    solution = record(spec, path, note=arguments.note)
    stats, failed = solution.stats, int((~solution.success).sum())
    print(
        f"{path}: {len(solution.status)} rows, {int(stats.n_steps.sum())} attempts, "
        f"{int(stats.n_rejected.sum())} refused, {int(stats.n_f_evals.sum())} evaluations, "
        f"{failed} failed, {stats.wall_seconds:.2f} s"
    )
    for row in (~solution.success).nonzero().flatten().tolist()[:10]:
        print(f"  {solution.message(row)}")
    return 0 if failed == 0 else 1


def read_spec(text: str) -> dict[str, Any]:
    """Return the spec in a file: JSON, or equations as they are typed.

    Raises:
        ValueError: it is neither.
    """
    from app.equations.system import is_equations

    if is_equations(text) and not text.lstrip().startswith("{"):
        return {"problem": text, "statistics": "all"}
    return json.loads(text)


def run_describe(arguments: argparse.Namespace) -> int:
    """Print the description, or renew the shipped copy."""
    from app import describe

    found = describe.describe()
    if arguments.snapshot:
        describe.SNAPSHOT.write_text(
            json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8"
        )
        print(f"wrote {describe.SNAPSHOT}")
    else:
        print(json.dumps(found))
    return 0


def run_ls(arguments: argparse.Namespace) -> int:
    """List the runs, newest first."""
    from app.equations.about import title_of
    from inspector import list_runs

    table = list_runs(arguments.runs)
    if arguments.json:
        print(table.to_json(orient="records", lines=True), end="")
    elif table.empty:
        print(f"no run in {arguments.runs.absolute()}")
    else:
        names = [
            "run",
            "status",
            "problem",
            "method",
            "controller",
            "seconds",
            "solves",
            "rows",
            "note",
        ]
        table = table.assign(problem=[title_of(problem) for problem in table["problem"]])
        print(table[[n for n in names if n in table]].to_string(index=False, na_rep=""))
    return 0


def find(runs: Path, run: str) -> Path:
    """Return the folder of a run given by id or path.

    Raises:
        FileNotFoundError: there is neither.
    """
    from inspector import is_run

    for path in (runs / run, Path(run)):
        if path.is_dir() and is_run(path):
            return path
    raise FileNotFoundError(f"run {run!r}: not in {runs.absolute()}, and no folder of a run itself")


def run_show(arguments: argparse.Namespace) -> int:
    """Print the numbers of every solve, failed rows and damage."""
    from inspector import open_run

    run = open_run(find(arguments.runs, arguments.run))
    damage = run.verify()
    print(f"{run.id}: {run.status}, {run.n_solves} solves")
    if run.spec:
        print(json.dumps(run.spec))
    names = ["solve", "batch", "method", "controller", "rtol", "atol", "n_steps", "n_rejected"]
    names += ["n_f_evals", "n_failed", "seconds"]
    table = run.solve_table()
    if not table.empty:
        print(table[[n for n in names if n in table]].to_string(index=False, na_rep=""))
    rows = run.solves()
    for _, row in rows[rows["status"] > 0].head(20).iterrows():
        print(f"  solve {row['solve']}: {row['message']}")
    for item in damage:
        print(f"  damaged: {item.file}: {item.what}")
    return 1 if damage else 0


def run_export(arguments: argparse.Namespace) -> int:
    """Write the tables of a run as CSV or Parquet, or what other viewers read."""
    from inspector import exports, open_run

    run = open_run(find(arguments.runs, arguments.run))
    out = arguments.out or Path(f"{run.id}-export")
    out.mkdir(parents=True, exist_ok=True)
    if arguments.to == "tensorboard":
        print(f"{out}: {exports.to_tensorboard(run, out)} numbers")
        return 0
    if arguments.to == "chrome":
        file = out / "trace.json"
        print(f"{file}: {exports.write_chrome_trace(run, file)} phases")
        return 0
    tables = {
        "steps": run.steps,
        "solves": run.solves,
        "solve_table": run.solve_table,
        "scalars": run.scalars,
        "states": run.states,
        "iterations": run.iterations,
        "events": run.events,
    }
    for name, read in tables.items():
        table = read()
        if table.empty:
            continue
        file = out / f"{name}.{arguments.to}"
        if arguments.to == "csv":
            table.to_csv(file, index=False)
        else:
            table.to_parquet(file, index=False)
        print(f"{file}: {len(table)} rows")
    return 0


def run_doctor(arguments: argparse.Namespace) -> int:
    """Check Python, packages, the runs folder and the solver."""
    import importlib.metadata as metadata
    import shutil

    good = True
    good = sys.version_info >= (3, 11)
    print(f"python {sys.version.split()[0]}: {'ok' if good else 'too old, 3.11 is needed'}")
    for package in (
        "torch",
        "streamlit",
        "plotly",
        "pandas",
        "numpy",
        "pyarrow",
        "duckdb",
        "joblib",
    ):
        try:
            print(f"{package} {metadata.version(package)}: ok")
        except metadata.PackageNotFoundError:
            good = False
            print(f"{package}: missing; pip install {package}")
    runs = arguments.runs.absolute()
    nearest = next(p for p in (runs, *runs.parents) if p.exists())
    writable = os.access(nearest, os.W_OK)
    free = shutil.disk_usage(nearest).free / 1e9
    print(f"runs folder {runs}: {'ok' if writable else 'not writable'}, {free:.1f} GB free")
    good &= writable
    try:
        from app.worker import solve_spec

        solution = solve_spec({"problem": "van_der_pol", "batch": 2, "n_eval": 2, "t1": 1.0})
        print(f"solver: ok ({solution.stats.wall_seconds * 1000:.0f} ms for two rows)")
    except Exception as error:  # whatever it is, it is what the user needs to see
        good = False
        print(f"solver: {type(error).__name__}: {error}")
    from app import describe

    fresh = describe.load() is not None
    print(
        f"description of the problems: {'ok' if fresh else 'will be read anew at the next start'}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
