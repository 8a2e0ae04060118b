"""Questions in SQL to a run, answered by DuckDB in a process that may touch nothing else.

`ask` starts `python -m inspector.ask`, which reads the tables that a query names, gives up the
right to open files, and only then runs it. A query is parsed first and refused unless all it names
are tables of the run and functions that compute: no file, no network, no setting, no second
statement.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import pyarrow as pa

    from inspector.run import Run

TABLES = {
    "steps": "an attempt of a row: solve, attempt, instance, t, dt, error_ratio, accepted, ...",
    "solves": "a row of a solve: status_name, n_steps, n_rejected, n_f_evals, t_reached, ...",
    "solve_table": "a solve: method, controller, rtol, atol, seconds, n_steps, ...",
    "scalars": "a number logged: iteration, name, value, time, session",
    "iterations": "an iteration of a training: loss, seconds, forward_steps, ...",
    "states": "a recorded state: solve, instance, t, y0, y1, ...",
    "events": "a note, alert or mark: time, kind, text, ...",
}
"""Table -> what one of its lines is."""
TABLE_FUNCTIONS = frozenset(("range", "generate_series", "unnest"))
REFUSED_FUNCTIONS = frozenset(
    ("write_log", "current_setting", "set_config", "nextval", "getenv", "getvariable", "query")
)
REFUSED_PREFIXES = ("duckdb_", "pg_", "pragma_", "read_", "json_execute", "http", "icu_set")
REFUSED_TYPES = frozenset(("pointer",))
READING = ("SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE")
MOST_LETTERS = 20_000
MOST_ROWS = 10_000
MOST_BYTES = 64 << 20  # of an answer
SECONDS = 10.0
MEMORY = "2GB"
ADDRESS_SPACE = 8 << 30  # bytes; what the process may map in all
HOME = Path(__file__).resolve().parent.parent


class RefusedQuery(ValueError):
    """A query that is no single SELECT over the tables of the run, or that failed."""


@dataclass(frozen=True)
class Answer:
    """What a query gave.

    Args:
        table: at most as many lines as were asked for.
        more: whether there were more.
        seconds: reading and computing.
    """

    table: "pd.DataFrame"
    more: bool
    seconds: float


def ask(
    path: str | os.PathLike[str],
    query: str,
    *,
    rows: int = MOST_ROWS,
    seconds: float = SECONDS,
) -> Answer:
    """Ask a run in SQL.

    Args:
        path: folder of the run.
        query: one SELECT over `TABLES`.
        rows: most lines given back.
        seconds: after which the query is given up.

    Raises:
        RefusedQuery: it is not allowed, wrong, took too long or too much memory; the message says
            which.
    """
    if len(query) > MOST_LETTERS:
        raise RefusedQuery(f"the query has {len(query):,} letters: at most {MOST_LETTERS:,}")
    order = json.dumps({"path": str(path), "query": query, "rows": rows})
    paths = os.pathsep.join([str(HOME), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "PATH": os.environ.get("PATH", "")}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "inspector.ask"],
            input=order.encode(),
            capture_output=True,
            timeout=seconds + 5.0,  # until it has started
            env=env,
        )
    except subprocess.TimeoutExpired:
        raise RefusedQuery(f"the query took more than {seconds:g} s and was given up") from None
    head, _, body = done.stdout.partition(b"\n")
    try:
        about = json.loads(head)
    except ValueError:
        raise RefusedQuery(
            "the query ended its process: it asked for too much memory or time"
        ) from None
    if about.get("error"):
        raise RefusedQuery(str(about["error"]))
    import pyarrow as pa

    with pa.ipc.open_stream(body) as stream:
        table = stream.read_all().to_pandas()
    return Answer(table, bool(about["more"]), float(about["seconds"]))


def check(connection: "duckdb.DuckDBPyConnection", query: str) -> tuple[set[str], set[str] | None]:
    """Parse a query and refuse what may not be asked.

    Returns:
        The tables it names, and the columns it may need of them; None for all.

    Raises:
        RefusedQuery: with the reason and, for an error of syntax, its place.
    """
    try:
        found = connection.execute("select json_serialize_sql(?::varchar)", [query]).fetchall()
        parsed = json.loads(found[0][0])
    except RecursionError:
        raise RefusedQuery("the query is nested too deeply") from None
    except Exception as error:  # of the parser, such as its own limit of depth
        raise RefusedQuery(first_line(error)) from None
    if parsed.get("error"):
        message = str(parsed.get("error_message", "not understood"))
        place = parsed.get("position")
        where = f" at letter {int(place) + 1}" if str(place).isdigit() else ""
        if "serialized" in message:
            message = "only one SELECT may be asked"
        raise RefusedQuery(f"{message}{where}")
    statements = parsed.get("statements") or []
    if len(statements) != 1:
        raise RefusedQuery(f"{len(statements)} statements: exactly one SELECT may be asked")
    nodes = list(_nodes(statements[0]))
    names = {str(n["key"]).lower() for node in nodes for n in _entries(node.get("cte_map"))}
    tables: set[str] = set()
    columns: set[str] | None = set()
    for node in nodes:
        kind = node.get("type")
        if str(kind).endswith("_NODE") and kind not in READING:
            raise RefusedQuery(
                "only one SELECT may be asked, and no part of it may change anything"
            )
        if kind == "BASE_TABLE":
            table = _table(node, names)
            if table:
                tables.add(table)
        elif kind == "TABLE_FUNCTION":
            _refuse_function(node.get("function") or {}, table=True)
        elif kind == "SHOW_REF":
            _refuse_show(node)
        elif node.get("class") == "FUNCTION":
            _refuse_function(node, table=False)
        elif node.get("class") == "TYPE" and str(node.get("type_name")).lower() in REFUSED_TYPES:
            raise RefusedQuery(f"type {node['type_name']}: not allowed")
        natural = any(value == "NATURAL" for value in node.values())  # by columns not named
        if node.get("class") == "STAR" or natural or kind == "SHOW_REF":
            columns = None
        elif node.get("class") == "COLUMN_REF" and columns is not None:
            columns |= {str(name).lower() for name in node.get("column_names") or ()}
        if columns is not None:
            columns |= {str(name).lower() for name in node.get("using_columns") or ()}
    return tables, columns


def _nodes(root: Any) -> Iterator[dict[str, Any]]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


def _entries(cte_map: Any) -> list[dict[str, Any]]:
    return list((cte_map or {}).get("map") or []) if isinstance(cte_map, Mapping) else []


def _table(node: Mapping[str, Any], names: set[str]) -> str | None:
    """Return the table of the run that a node names; None for a WITH name."""
    name = str(node.get("table_name", ""))
    place = [str(node.get(part) or "") for part in ("catalog_name", "schema_name")]
    if any(part.lower() not in ("", "main", "memory") for part in place):
        raise RefusedQuery(f"table {'.'.join([*filter(None, place), name])}: {_known()}")
    if name.lower() in names:
        return None
    if name.lower() not in TABLES:
        raise RefusedQuery(f"table {name}: {_known()}")
    return name.lower()


def _known() -> str:
    return f"must be one of {', '.join(TABLES)}"


def _refuse_function(node: Mapping[str, Any], *, table: bool) -> None:
    name = str(node.get("function_name", "")).lower()
    bad = name in REFUSED_FUNCTIONS or name.startswith(REFUSED_PREFIXES)
    if bad or (table and name not in TABLE_FUNCTIONS):
        allowed = f"; of those that give tables, {', '.join(sorted(TABLE_FUNCTIONS))} are"
        raise RefusedQuery(f"function {name}: not allowed{allowed if table else ''}")


def _refuse_show(node: Mapping[str, Any]) -> None:
    if node.get("query") is None:  # not of a table, but of what there is
        raise RefusedQuery(f"the tables are {', '.join(TABLES)}; `describe steps` tells of one")


def connect() -> "duckdb.DuckDBPyConnection":
    """Return a database in memory that can reach neither files, network, extensions nor Python."""
    import duckdb

    connection = duckdb.connect(":memory:", config={"threads": 1})
    for setting in (
        "enable_external_access = false",
        "python_enable_replacements = false",
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        "allow_community_extensions = false",
        f"memory_limit = '{MEMORY}'",
        "max_temp_directory_size = '0B'",
        "disabled_filesystems = 'LocalFileSystem'",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")
    return connection


def tables_of(run: "Run", tables: set[str], columns: set[str] | None) -> "dict[str, pd.DataFrame]":
    """Return the tables named; of `steps`, which are many, only the columns needed."""
    found = {}
    for name in tables:
        if name == "steps":
            ids = ["solve", "attempt", "instance"]
            known = list(run.columns)
            wanted = None
            if columns is not None:
                wanted = ids + [c for c in known if c.lower() in columns and c not in ids]
            found[name] = run.steps(columns=wanted)
        else:
            found[name] = getattr(run, name)()
    return found


def first_line(error: BaseException) -> str:
    """Return what an error of DuckDB says, without the query repeated."""
    said = str(error).partition("\n\nLINE")[0].strip().replace("\n", " ")
    if "has been disabled by configuration" in said or "Out of Memory" in said:
        return f"the query needs more than {MEMORY} of memory, or a file"
    return said


def confine() -> None:
    """Give up the right to open, write or grow, for the rest of this process."""
    try:
        import resource
    except ImportError:  # not on this system: the database's own limits remain
        return
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))  # also sockets; what is open stays open


def answer(order: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Answer an order in this process and confine it; returns the head and an Arrow stream."""
    import pyarrow as pa

    from inspector.listing import is_run
    from inspector.run import Run

    began = time.perf_counter()
    connection = connect()
    try:
        tables, columns = check(connection, str(order["query"]))
        if not is_run(Path(order["path"])):
            raise RefusedQuery(f"the run cannot be read: {order['path']!r} holds none")
        frames = tables_of(Run(order["path"]), tables, columns)
        for name, frame in frames.items():
            connection.register(name, pa.Table.from_pandas(plain(frame), preserve_index=False))
    except RefusedQuery as error:
        return {"error": str(error)}, b""
    except OSError as error:
        return {"error": f"the run cannot be read: {error}"}, b""
    confine()
    most = int(order["rows"])
    try:
        reader: Any = connection.execute(str(order["query"])).to_arrow_reader(2_048)
        parts, count, size = [], 0, 0
        for batch in reader:
            parts.append(batch)
            count, size = count + len(batch), size + batch.nbytes
            if size > MOST_BYTES:
                large = f"the answer takes more than {MOST_BYTES >> 20} MB"
                return {"error": f"{large}: ask for fewer lines or shorter values"}, b""
            if count > most:
                break
        table = numbers(pa.Table.from_batches(parts, reader.schema))
    except Exception as error:  # whatever is wrong with the query is what its author needs to see
        return {"error": first_line(error)}, b""
    sink = pa.BufferOutputStream()
    kept = table.slice(0, most)
    with pa.ipc.new_stream(sink, kept.schema) as stream:
        stream.write_table(kept)
    seconds = time.perf_counter() - began
    return {"more": len(table) > most, "seconds": seconds}, sink.getvalue().to_pybytes()


def numbers(table: "pa.Table") -> "pa.Table":
    """Return a table whose decimals, such as sums of whole numbers, are plain numbers."""
    import pyarrow as pa

    for i, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type):
            kind = pa.int64() if field.type.scale == 0 else pa.float64()
            try:
                column = table.column(i).cast(kind)
            except pa.ArrowInvalid:
                column = table.column(i).cast(pa.float64())
            table = table.set_column(i, field.name, column)
    return table


def plain(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a frame whose columns of mixed objects are text, as a database needs it."""
    texts = {
        name: frame[name].map(lambda v: v if v is None or isinstance(v, str) else json.dumps(
            v, default=str))
        for name in frame.columns
        if frame[name].dtype == object
    }  # fmt: skip
    return frame.assign(**texts) if texts else frame


def main() -> int:
    """Answer the order on standard input."""
    import pandas  # noqa: F401  # everything late is loaded before the process is confined
    import pyarrow.ipc  # noqa: F401

    order = json.loads(sys.stdin.buffer.read())
    head, body = answer(order)
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n" + body)
    sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # no clean-up that would need a file
