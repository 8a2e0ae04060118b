"""What a run looks like on disk: names, types and units of everything in it.

A run is a folder of JSON and Arrow files. Nothing else is needed to read it::

    import json, pathlib, pyarrow as pa
    run = pathlib.Path("runs/my-run")
    about = json.loads((run / "run.json").read_text())
    for file in sorted((run / "steps").glob("*.arrows")):
        try:
            for batch in pa.ipc.open_stream(file):  # columns as in STEP_COLUMNS below
                print(file.name, batch.num_rows, batch.schema.names)
        except (pa.ArrowInvalid, OSError):
            pass  # the last batch was cut short by a crash; all before it are whole

Files, where `<w>` names a writer, `r<rank>-<token>`. Every process that records into the run is a
writer of its own and never touches the files of another, so there is no lock:

`run.json`
    `schema` (SCHEMA_VERSION), `id`, `created` (seconds since 1970), `spec`, `note`, `tags`,
    `versions`, `parameters` (name -> one number for each instance), `writers`, `status`. Written to
    a temporary file and renamed.
`writers/<w>.json`
    `host`, `pid`, `pid_started`, `rank`, `world_size`, `after` (writers that were there before),
    `started`, `heartbeat`, `ended`, `status` and counts of what was stored, thinned, dropped or
    lost. Its modification time is a sign of life.
`solves/<w>.jsonl`
    One JSON object a line, by `kind`. `columns`: unit, help and labels of the statistics.
    `start`: number `solve`, settings, `t0` and `t1`, `iteration`, and `backward_of`, the number of
    the solve whose gradient this one is. `samples`: `ids`, the sample of a data set that each
    instance is. `rows`: what became of each instance. `end`: totals, seconds, `quantiles` over the
    instances (QUANTILES below) and the slowest ones. `backward`: what a backward pass through the
    solve took. An array in which every instance has the same value is written as that one value.
    `thinned`: `rows` of the solve that were let go on purpose; `late`: `rows_recorded` after the
    `end`, of a solve that was held back and turned out to be the worst or the last.
`scalars/<w>.jsonl`
    `iteration`, `name`, `value`, `time`, `solve` (solves started so far).
`iterations/<w>.jsonl`
    `iteration`, `time` (of its end), `solves` (those started in it, half-open, as this writer
    counts), `values`: `seconds`, `forward_seconds` (in solves), `f_seconds` (of them in the vector
    field), `backward_seconds` (from the last solve to the optimizer's step), and what a watched
    optimizer or model told.
`events.jsonl`
    `time`, `kind`, `text`, `writer` and free data: notes, drops, errors of the disk.
`steps/<w>-<segment>-s<first solve>.arrows`
    Arrow IPC streams, LZ4. One row is one attempt of one instance; a record batch belongs to one
    solve and is ordered by attempt, then instance. Only attempts in which the instance was running
    are there.
`states/<w>-<segment>-s<first solve>.arrows`
    The same for sampled trajectories: `solve, attempt, instance, t, y` with `y` a list of `D`
    numbers.
`steps/<...>.index`, `states/<...>.index`
    Text beside each stream. The first line is `stepscope-index 1 <the head of the stream, its
    schema, in hexadecimal> <crc32 of this line>`, each further line describes one record batch:
    `offset bytes rows solve first_attempt last_attempt+1 full crc32 <crc32 of this line>`,
    checksums in hexadecimal. `full` is 1 when no recorded instance is missing in any attempt of the
    batch.

`solve` in these files is counted by each writer from 0. The number of a solve in the run is its
place in the order of start over all writers, so a run that is resumed goes on counting, and nothing
is replaced.

JSON numbers that are not finite are the strings `"nan"`, `"inf"` and `"-inf"`. A JSON line ends
with a member `crc`, the crc32 in hexadecimal of the same object without it.
"""

from dataclasses import dataclass, field
from typing import Any

SCHEMA_VERSION = 1

INDEX_MAGIC = "stepscope-index 1"


@dataclass(frozen=True)
class Column:
    """One column of a steps or states file.

    Args:
        name: as in the file.
        dtype: numpy type code: `i4`, `f8`, `f4`, `u1`, `i2`.
        unit, help: shown beside every chart.
        labels: code -> word, where the value is a code.
        title: what a chart calls it.
        signed: whether 0 is the neutral middle of its scale.
        log: whether it is best seen on a logarithmic scale.
    """

    name: str
    dtype: str
    unit: str
    help: str
    labels: dict[int, str] = field(default_factory=dict)
    title: str = ""
    signed: bool = False
    log: bool = False

    def describe(self) -> dict[str, Any]:
        """Return the JSON form: all fields but the name."""
        return {
            "title": self.title or self.name,
            "unit": self.unit,
            "help": self.help,
            "labels": self.labels,
            "dtype": self.dtype,
            "signed": self.signed,
            "log": self.log,
        }


ID_COLUMNS = (
    Column("solve", "i4", "", "number of the solve within its writer, from 0"),
    Column("attempt", "i4", "", "number of the attempt within its solve, from 0"),
    Column("instance", "i4", "", "row of the batch, from 0"),
)
STEP_COLUMNS = (
    *ID_COLUMNS,
    Column("t", "f8", "time", "where the attempt began"),
    Column(
        "dt", "f8", "time", "signed size of the step that was tried", title="Step size", log=True
    ),
    Column("error_ratio", "f4", "error / tolerance", "estimated error; at most 1 is accepted"),
    Column("accepted", "u1", "", "1 where the step was taken", {0: "refused", 1: "accepted"}),
)
STEP_NAMES = tuple(column.name for column in STEP_COLUMNS)
STATE_NAMES = ("solve", "attempt", "instance", "t", "y")

# Statuses as the solver counts them; here so that a run can be read without it.
STATUS_NAMES = {
    -1: "RUNNING",
    0: "SUCCESS",
    1: "NON_FINITE_START",
    2: "REACHED_DT_MIN",
    3: "REACHED_MAX_STEPS",
    4: "NON_FINITE",
    5: "TIME_RESOLUTION",
    6: "INTERRUPTED",
    7: "EVENT",
    8: "NOT_CONVERGED",
}
MEANT_TO_END = (0, 7)  # statuses of rows that reached their end, or the event that was to end them

COUNTS = ("n_steps", "n_accepted", "n_rejected", "n_f_evals")
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)  # of counts over rows, in each `end` line


def column_from_json(name: str, about: dict[str, Any]) -> Column:
    """Rebuild a column from `Column.describe`; codes are whole numbers again."""
    labels = {int(code): str(word) for code, word in (about.get("labels") or {}).items()}
    unit, help, title = (str(about.get(key, "")) for key in ("unit", "help", "title"))
    signed, log = (about.get(key) is True for key in ("signed", "log"))
    return Column(name, str(about.get("dtype", "f4")), unit, help, labels, title, signed, log)
