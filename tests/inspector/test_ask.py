"""Questions in SQL: answers are right, and what is hostile is refused before it runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from inspector import open_run
from inspector.ask import TABLES, RefusedQuery, ask, check, connect
from inspector.synthetic import write_synthetic_run

HOME = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("asked") / "run"
    write_synthetic_run(path, batch=4, attempts=80, states=2, solves=2)
    return path


def test_counts_are_those_of_the_tables(recorded):
    run = open_run(recorded)
    found = ask(
        recorded,
        "select solve, instance, count(*) as n, sum(accepted) as good from steps "
        "group by all order by all",
    )
    steps = run.steps().groupby(["solve", "instance"])["accepted"].agg(["count", "sum"])
    assert list(found.table["n"]) == list(steps["count"])
    assert list(found.table["good"]) == list(steps["sum"])
    assert not found.more


@pytest.mark.parametrize("table", TABLES)
def test_every_table_can_be_asked(recorded, table):
    found = ask(recorded, f"select count(*) as n from {table}")
    run = open_run(recorded)
    expected = len(getattr(run, table)())
    assert list(found.table["n"]) == [expected]


def test_joins_with_names_windows_and_descriptions_are_answered(recorded):
    query = """
        with worst as (select instance, n_steps from solves where solve = 0
                       order by n_steps desc limit 1)
        select attempt, dt, avg(dt) over (order by attempt rows 3 preceding) as smooth
        from steps join worst using (instance) where solve = 0 order by attempt
    """
    found = ask(recorded, query)
    assert list(found.table.columns) == ["attempt", "dt", "smooth"]
    assert len(found.table) == int(open_run(recorded).solves().query("solve == 0")["n_steps"].max())
    described = ask(recorded, "describe steps").table
    assert {"dt", "error_ratio", "accepted"} <= set(described["column_name"])


def test_long_answers_are_cut_and_say_so(recorded):
    found = ask(recorded, "select * from range(5000)", rows=100)
    assert len(found.table) == 100
    assert found.more


HOSTILE = [
    "select * from read_csv_auto('/etc/passwd')",
    "select * from read_ndjson_objects('/proc/self/environ')",
    "select * from '/tmp/*.parquet'",
    "select * from '~/.ssh/id_rsa'",
    "select * from steps, lateral (select * from read_text('/etc/passwd'))",
    "select * from steps order by (select max(content) from read_text('/etc/passwd'))",
    "select exists(from glob('/etc/*'))",
    "from glob('/etc/*')",
    "from '/etc/passwd'",
    "table duckdb_settings",
    "pivot (from glob('/*')) on file",
    "/* select 1 */ copy steps to '/tmp/stolen.csv'",
    "-- select 1\npragma database_list",
    "select 1 /* ; */ ; drop table steps --",
    "copy steps to program 'id'",
    "copy (select getenv('HOME')) to '/dev/stdout'",
    "SeLeCt GeTeNv('HOME')",
    "select \"getenv\"('HOME')",
    "select main.getenv('HOME')",
    "select steps.getenv('HOME') from steps",
    "attach 'http://127.0.0.1:1/x.db'",
    "attach ':memory:' as other; select 1",
    "force install httpfs",
    "install './evil.duckdb_extension'",
    "load '/tmp/evil.duckdb_extension'",
    "update extensions",
    "set enable_external_access = true",
    "set global lock_configuration = false",
    "pragma enable_profiling; select 1",
    "pragma temp_directory = '/tmp'",
    "export database '/tmp/x' (format parquet)",
    "create table x as select * from read_text('/etc/passwd')",
    "create secret s (type s3)",
    "create function f() as (select 1)",
    "comment on table steps is 'x'",
    "alter table steps add column x int",
    "merge into steps using steps as s on true when matched then delete",
    "truncate steps",
    "execute x",
    "deallocate x",
    "use other",
    "call duckdb_logs()",
    "kill 1",
    "explain select 1",
    "explain copy steps to '/tmp/stolen.csv'",
    "select * from sqlite_master",
    "select * from duckdb_variables()",
    "select * from duckdb_extensions()",
    "select * from which_secret('x', 's3')",
    "select * from summary((select 1))",
    "select * from checkpoint()",
    "select * from json_execute_serialized_sql(json_serialize_sql('select 1'))",
    "select * from seq_scan('steps')",
    "select * from steps.steps",
    "select * from temp.main.steps",
    "select * from system.information_schema.tables",
    "insert into steps select * from steps returning *",
    "with x as (delete from steps returning *) select * from x",
    "with x as (insert into steps select * from steps returning *) select * from x",
    "with x as (update steps set dt = 0 returning *) select * from x",
    "select * from (with x as (delete from steps returning *) select * from x)",
    "select nextval('x')",
    "select set_config('memory_limit', '1TB')",
    "select pg_read_file('/etc/passwd')",
    "select current_setting('home_directory')",
    "select * from read_csv('/etc/passwd')",
    "select * from read_text('/etc/passwd')",
    "select * from read_blob('/etc/passwd')",
    "select * from read_parquet('/tmp/x')",
    "select * from parquet_scan('/tmp/x')",
    "select * from '/etc/passwd'",
    "select * from '/etc/passwd.csv'",
    'select * from "/etc/passwd"',
    "select * from glob('/*')",
    "select * from sniff_csv('/etc/passwd')",
    "select * from read_json('http://127.0.0.1:1/x')",
    "select * from 'https://127.0.0.1:1/x.parquet'",
    "select (select content from read_text('/etc/passwd'))",
    "with x as (select * from read_text('/etc/passwd')) select * from x",
    "select * from steps where instance in (select 1 from read_text('/etc/passwd'))",
    "select * from query('select 1')",
    "select * from query_table('steps')",
    "select * from pandas_scan(1::pointer, 2::pointer, 3::pointer)",
    "select * from arrow_scan(1::pointer, 2::pointer, 3::pointer)",
    "select cast(12345 as pointer)",
    "select * from python_map_function((select 1))",
    "copy steps to '/tmp/stolen.csv'",
    "copy (select 1) to '/tmp/stolen.csv'",
    "attach '/tmp/x.db'",
    "detach memory",
    "install httpfs",
    "load httpfs",
    "pragma database_list",
    "set memory_limit = '100GB'",
    "reset memory_limit",
    "call pragma_version()",
    "export database '/tmp/x'",
    "import database '/tmp/x'",
    "create table x (a int)",
    "create view x as select 1",
    "create macro f() as 1",
    "insert into steps values (1)",
    "update steps set dt = 0",
    "delete from steps",
    "drop table steps",
    "begin transaction",
    "checkpoint",
    "vacuum",
    "prepare x as select 1",
    "explain analyze select 1",
    "select 1; select 2",
    "select 1; copy steps to '/tmp/x'",
    "select * from information_schema.tables",
    "select * from pg_catalog.pg_class",
    "select * from duckdb_settings()",
    "select * from duckdb_secrets()",
    "select current_setting('memory_limit')",
    "select write_log('x')",
    "select getenv('HOME')",
    "select * from other.main.steps",
    "select * from df",
    "select * from order",
    "show all tables",
    "show databases",
    "selec 1",
    "",
    "--",
    "select " + "(" * 5_000 + "1" + ")" * 5_000,
    "select " + "+".join(["1"] * 9_000),
    "\x00",
    "select \ud7ff from step\u0455",
]


@pytest.mark.parametrize("query", HOSTILE, ids=lambda query: ascii(query[:50]))
def test_a_hostile_or_wrong_query_is_refused_before_it_runs(query):
    with connect() as connection:
        if query.startswith("select 1+1"):  # long, and harmless where the parser takes it
            return
        with pytest.raises(RefusedQuery) as refused:
            check(connection, query)
        assert str(refused.value)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select repeat('x', 1000000) as x from range(9000)", "64 MB|memory|given up"),
        ("select repeat('x', 4000000000) as x", "memory|given up"),
        ("select list(a.range) from range(100000000) a", "64 MB|memory|given up"),
        ("with recursive r as (select 1 as i union all select i + 1 from r) select max(i) from r",
         "given up|memory"),
        ("select count(*) from range(100000) a, range(100000) b, range(100000) c "
         "where a.range * b.range = c.range", "given up|memory"),
    ],
)  # fmt: skip
def test_a_query_that_asks_for_too_much_ends_alone(recorded, query, said):
    with pytest.raises(RefusedQuery, match=said):
        ask(recorded, query, seconds=1.0)


@pytest.mark.parametrize(
    "query",
    [
        "select 1 as n -- ; copy steps to '/tmp/stolen.csv'",
        "select /* pragma database_list */ 1 as n",
        "select 'copy steps to x; drop table steps' as n",
        'select "accepted" as n from steps limit 1',
        "(select 1 as n)",
        "from steps select count(*) as n",
    ],
)
def test_what_only_looks_hostile_is_answered(recorded, query):
    assert list(ask(recorded, query).table.columns) == ["n"]


@pytest.mark.parametrize(
    "query", ["select * from '/etc/passwd'", "copy steps to '/tmp/stolen.csv'", "attach '/tmp/x'"]
)
def test_the_database_itself_reaches_nothing_either(query):
    import duckdb

    with connect() as connection, pytest.raises(duckdb.Error):
        connection.execute(query)
    assert not Path("/tmp/stolen.csv").exists()


def test_a_confined_process_can_open_nothing_any_more(tmp_path):
    script = (
        "from inspector.ask import confine; import socket, sys\n"
        "confine()\n"
        "for what in (lambda: open('/etc/hostname'), socket.socket, "
        f"lambda: open({str(tmp_path / 'x')!r}, 'w')):\n"
        "    try:\n        what()\n        sys.stderr.write('opened')\n"
        "    except OSError:\n        sys.stderr.write('refused ')\n"
        "import os; sys.stderr.flush(); os._exit(0)\n"
    )
    env = os.environ | {"PYTHONPATH": str(HOME)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=env
    )
    assert done.stderr.split() == ["refused"] * 3


def test_a_query_without_end_or_bounds_is_given_up(recorded):
    with pytest.raises(RefusedQuery, match=r"memory|given up"):
        ask(
            recorded,
            "select count(*) from range(1000000000) a, range(1000000000) b where a.range = b.range",
            seconds=1.0,
        )


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select dt from steps where", "letter"),
        ("select nope from steps", "nope"),
        ("select * from nowhere", "must be one of steps"),
        ("select * from read_csv('x')", "read_csv"),
        ("show tables", "the tables are steps"),
        ("select 1; select 2", "exactly one"),
        ("x" * 30_000, "letters"),
    ],
)
def test_a_refusal_says_what_is_wrong(recorded, query, said):
    with pytest.raises(RefusedQuery, match=said):
        ask(recorded, query)


def test_a_folder_that_is_no_run_is_named(tmp_path):
    with pytest.raises(RefusedQuery, match="cannot be read"):
        ask(tmp_path / "nothing", "select * from steps")


def test_only_the_columns_a_query_may_need_are_read():
    with connect() as connection:
        tables, columns = check(connection, "select max(dt) from steps where t > 1")
        assert tables == {"steps"}
        assert columns == {"dt", "t"}
        assert check(connection, "select * from steps")[1] is None
        assert check(connection, "select count(*) from steps natural join solves")[1] is None
        assert check(connection, "with steps as (select 1 as a) select * from steps")[0] == set()
