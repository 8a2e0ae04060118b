"""The C++ text of a traced solve: lanes of rows stepped together, each at its own time.

Rows are taken `L` at a time. All their state lies in small arrays, one number a lane, which stay in
the processor's first cache, and one pass over its vectors is one attempt. Rare
things (a row ends, fails, passes an output) are done lane by lane after it.
"""

from collections.abc import Mapping

import torch

from solver.compiled.body import Body
from solver.compiled.expression import (
    BOOL,
    F32,
    F64,
    FUNCTIONS,
    I64,
    VECTORS,
    Node,
    reachable,
)
from solver.compiled.prelude import prelude
from solver.compiled.record import (
    MASKS,
    PLAIN,
    in_lanes,
    masked_stores,
    rest_of_block,
    rows_left_out,
)
from solver.compiled.statements import statements
from solver.compiled.symbolic import KINDS


class Layout:
    """Which lane arrays there are, of which type, and where they are kept between calls."""

    def __init__(self, body: Body, dim: int, state: str, time: str):
        """Name the arrays: `t`, `y0`, `k0`, ... and their types."""
        self.kinds: dict[str, str] = {}
        for name in ("t", "asked", "end", "stretch", "smallest", "running"):
            self.kinds[name] = time
        if "fixed" in body.begin:
            self.kinds["fixed"] = time
        keeps = "k0" in body.begin or (dim == 0 and "k" in body.begin)
        self.kinds |= {f"y{d}": state for d in range(dim)}
        if keeps:
            self.kinds |= {f"k{d}": state for d in range(dim)}
        for i, dtype in enumerate(body.history):
            kind = KINDS[dtype]
            self.kinds[f"h{i}"] = time if kind == BOOL else kind
        self.kinds["prev"] = state
        for name, dtype in body.carried.items():
            self.kinds[name] = time if dtype == torch.bool else KINDS[dtype]
        self.kinds["accepted"] = time
        # kept for rows, not touched in the vectorised loop
        self.counts = ("n_steps", "extra", "status", "component", "on_accept", "index")
        self.places: dict[str, tuple[str, int]] = {}
        totals = {F32: 0, F64: 0}
        for name, kind in self.kinds.items():
            self.places[name] = (kind, totals[kind])
            totals[kind] += 1
        self.places["last_dt"] = (time, totals[time])
        totals[time] += 1
        self.totals = totals


def emit(
    body: Body,
    *,
    dim: int,
    state: str,
    time: str,
    outputs: bool,
    dense: bool,
    starts: bool,
    states: bool,
    recorded: bool,
    column_kinds: Mapping[str, str],
    polynomial_kind: str,
    interpolant_evals: int,
    gives_end_slope: bool,
    automatic: bool,
) -> str:
    """Return the source; `run` in it is described in `engine.py`.

    Args:
        body: the traced parts.
        dim, state, time: D and the C++ types of state and time.
        outputs, dense, starts, states, recorded: whether outputs are read off polynomials, these
            kept, starts of steps kept, states and attempts recorded.
        column_kinds: types of further columns.
        polynomial_kind: type of the polynomials' coefficients.
        interpolant_evals, gives_end_slope: what a polynomial costs, see `Stepper`.
        automatic: the first step is chosen, not given.
    """
    layout = Layout(body, dim, state, time)
    slots = body.trace.slots
    parts = [body.begin, body.attempt, body.failure, body.polynomial, body.columns]
    used = {node.op for part in parts for node in reachable(part.values())}
    out = [prelude(used & set(FUNCTIONS), single=(state, time) == (F32, F32))]
    out.append("struct Arguments {\n  void** p; const int64_t* q; const double* K;\n};\n")
    pointers = _Pointers(layout, slots, column_kinds, state, time, polynomial_kind)

    # ---- begin
    out.append("static void begin(const Arguments& a, const int64_t* rows, int m) {")
    out.append(pointers.unpack())
    out.append("  const double* K = a.K; (void)K; const int64_t B = a.q[0]; (void)B;")
    out.append(_per_row(slots))
    names = [f"y{d}" for d in range(dim)]
    out.append(f"  LANES({time}, t); LANES({time}, end);")
    out += [f"  LANES({state}, {name});" for name in names]
    if not automatic:
        out.append(f"  LANES({time}, first);")
    stores = dict(body.begin)
    for name in stores:
        if name not in ("end", "t"):
            out.append(f"  LANES({_lane_kind(name, stores[name], layout, time)}, {name});")
    out.append("  for (int l = 0; l < L; l++) {\n    const int64_t r = rows[l < m ? l : 0];")
    out.append("    t[l] = START[r]; end[l] = END[r];")
    out += [f"    {name}[l] = Y0[r * {dim} + {d}];" for d, name in enumerate(names)]
    if not automatic:
        out.append("    first[l] = FIRST[r];")
    out.append("  }")
    out.append(_loop(stores, layout, time, "  "))
    out.append("  for (int l = 0; l < m; l++) {\n    const int64_t r = rows[l];")
    for name, (kind, place) in layout.places.items():
        if name in stores or name in ("t", *names):
            out.append(f"    S_{kind}[{place} * B + r] = {name}[l];")
        elif name == "accepted":
            out.append(f"    S_{kind}[{place} * B + r] = 0;")
        elif name == "last_dt":
            out.append(f"    S_{kind}[{place} * B + r] = NAN;")
    for place, name in enumerate(layout.counts):
        if name in stores:
            out.append(f"    C[{place} * B + r] = {name}[l];")
        elif name in ("n_steps", "on_accept"):
            out.append(f"    C[{place} * B + r] = {0 if name == 'n_steps' else 1};")
    out.append("  }\n}\n")

    # ---- one block of rows
    out.append(
        "static int64_t block(const Arguments& a, const int64_t* rows, int m, int64_t done,\n"
        "                     int64_t most) {"
    )
    out.append(pointers.unpack())
    out.append("  const double* K = a.K; (void)K; const int64_t B = a.q[0]; (void)B;")
    out.append("  const int64_t T = a.q[4]; (void)T; const int64_t start = done;")
    out.append(_per_row(slots))
    carried = [name for name in layout.kinds if name not in ("stretch", "smallest")]
    out += [f"  LANES({kind}, {name});" for name, kind in layout.kinds.items()]
    poly_loads = _lane_names(body.polynomial) if body.polynomial else set()
    failure_loads = _lane_names(body.failure)
    kept = sorted((poly_loads | failure_loads | {"tried", "gone", "was", "moved"}) - set(carried))
    kept = [name for name in kept if name in body.attempt]
    if recorded or outputs or dense:
        kept += [n for n in ("t_old", "dt", "t_next") if n not in kept]
        kept += [
            f"y_old{d}"
            for d in range(dim)
            if f"y_old{d}" not in kept and (outputs or dense or starts)
        ]
    if recorded and "own" not in kept:
        kept.append("own")
    for name in kept:
        out.append(f"  LANES({_lane_kind(name, body.attempt[name], layout, time)}, {name});")
    for name, node in body.columns.items():
        out.append(f"  LANES({time if node.kind == BOOL else node.kind}, col_{name});")
    for name in body.polynomial:
        out.append(f"  LANES({polynomial_kind}, {name});")
    out.append("  LANES(int64_t, code); LANES(int64_t, worst);")
    if outputs:
        out.append(f"  LANES({time}, upcoming);")
    out.append("  for (int l = 0; l < L; l++) {\n    const int64_t r = rows[l < m ? l : 0];")
    for name, (kind, place) in layout.places.items():
        if name in layout.kinds:
            out.append(f"    {name}[l] = S_{kind}[{place} * B + r];")
    if outputs:
        index = layout.counts.index("index")
        out.append(f"    const int64_t i = C[{index} * B + r];")
        out.append("    upcoming[l] = i < T ? SEARCH[r * T + i] : INFINITY;")
    out.append("    if (l >= m) running[l] = 0;\n  }")
    if recorded:  # rows side by side are written to the record as vectors
        out.append("  const bool together = m == L && rows[L - 1] == rows[0] + L - 1;")
    out.append("  for (; done < start + most; done++) {")
    out.append("    vi alive = vi{}, rare = vi{}, hits = vi{};")
    if recorded:
        out.append("    const int64_t at = (done - a.q[5]) * B;")
    out.append("    EACH_VECTOR {")
    stores = {name: body.attempt[name] for name in (*carried, *kept) if name in body.attempt}
    stores = {k: v for k, v in stores.items() if v.args != (f"{k}[l]",)}  # stays as it is
    columns = {f"col_{name}": node for name, node in body.columns.items()}
    text, names_of = statements([*stores.values(), *columns.values()], "      ")
    out.append(text)
    moved, was = names_of[body.attempt["moved"].number], names_of[body.attempt["was"].number]
    running = names_of[body.attempt["running"].number]
    out.append(f"      put(accepted, u, lanes_{VECTORS[time]}(accepted, u) + "
               f"pick({moved}, {VECTORS[time]}{{}} + 1, {VECTORS[time]}{{}}));")  # fmt: skip
    out.append(f"      alive |= {running}; rare |= {was} & ~{running};")
    if outputs:
        t_next = names_of[body.attempt["t_next"].number]
        out.append(
            f"      const vi hit = {moved} & mask(lanes_{VECTORS[time]}(upcoming, u) <= {t_next});"
        )
        out.append("      hits |= hit;")
    out.append(_stores(stores, names_of, layout, time, "      "))
    if recorded:
        vectors = {name: body.attempt[source] for name, source in (*PLAIN, *MASKS)}
        vectors |= {f"R_{name}": node for name, node in body.columns.items()}
        named = {name: (node.kind, names_of[node.number]) for name, node in vectors.items()}
        out.append(masked_stores(named, was))
        out.append("      else {\n" + _stores(columns, names_of, layout, time, "        "))
        out.append("      }")
    out.append("    }")
    if dense:
        out.append(_loop(body.polynomial, layout, time, "    "))
    if outputs:
        out.append("    if (any(hits)) {")
        if not dense:
            out.append(_loop(body.polynomial, layout, time, "      "))
        out.append(_output_loop(layout, dim, state, polynomial_kind, body, interpolant_evals,
                                gives_end_slope, dense))  # fmt: skip
        out.append("    }")
    if dense:
        extra = layout.counts.index("extra")
        gain = f" - (running[l] != 0 ? {int(gives_end_slope)} : 0)"
        out.append(
            f"    for (int l = 0; l < m; l++) if (moved[l] != 0) C[{extra} * B + rows[l]] += "
            f"{interpolant_evals}{gain};"
        )
    if recorded:
        out.append(
            in_lanes(column_kinds, dim, states, starts or dense, body.degree if dense else 0)
        )
    out.append("    if (any(rare)) {")
    out.append(_loop(body.failure, layout, time, "      "))
    c = {name: place for place, name in enumerate(layout.counts)}
    kind, place = layout.places["last_dt"]
    out.append(
        f"      for (int l = 0; l < m; l++) if (was[l] != 0 && running[l] == 0) {{\n"
        f"        const int64_t r = rows[l];\n        C[{c['n_steps']} * B + r] = done + 1;\n"
        f"        if (gone[l] != 0) {{\n          C[{c['status']} * B + r] = code[l];\n"
        f"          C[{c['component']} * B + r] = worst[l];\n"
        f"          C[{c['on_accept']} * B + r] = moved[l] != 0;\n"
        f"          S_{kind}[{place} * B + r] = tried[l];\n        }}\n      }}\n    }}"
    )
    out.append("    if (a.q[10] && !any(alive)) { done++; break; }\n  }")
    if recorded:
        out.append(rest_of_block(column_kinds, dim, states))
    out.append("  for (int l = 0; l < m; l++) {\n    const int64_t r = rows[l];")
    for name in carried:
        kind, place = layout.places[name]
        out.append(f"    S_{kind}[{place} * B + r] = {name}[l];")
    out.append("  }\n  return done - start;\n}\n")
    out.append(_run(layout, column_kinds, state, time, dim, states, recorded, pointers.unpack()))
    return "\n".join(out)


class _Pointers:
    """The order in which tensors are handed over."""

    def __init__(
        self, layout: Layout, slots: list, column_kinds: Mapping[str, str], state: str, time: str,
        polynomial_kind: str,
    ):  # fmt: skip
        names = [
            ("S_float", F32), ("S_double", F64), ("C", I64), ("Y0", state), ("START", time),
            ("END", time), ("FIRST", time), ("SEARCH", time), ("YS", state), ("R_t", time),
            ("R_dt", time), ("R_ratio", state), ("R_moved", "uint8_t"), ("R_running", "uint8_t"),
            ("R_y", state), ("R_start", state), ("R_polynomial", polynomial_kind),
            ("R_step", time),
        ]  # fmt: skip
        names += [(f"R_{name}", kind) for name, kind in column_kinds.items()]
        names += [(f"U{i}", slot.kind) for i, slot in enumerate(slots)]
        self.names = names

    def unpack(self) -> str:
        """Return the declarations."""
        lines = []
        for i, (name, kind) in enumerate(self.names):
            kind = "uint8_t" if kind == BOOL else kind
            lines.append(f"  {kind}* {name} = ({kind}*)a.p[{i}]; (void){name};")
        return "\n".join(lines)


def pointer_names(
    body: Body, column_kinds: Mapping[str, str], dim: int, state: str, time: str, polynomial: str
) -> list[str]:
    """Return the names of the tensors that `run` takes, in order."""
    layout = Layout(body, dim, state, time)
    pointers = _Pointers(layout, body.trace.slots, column_kinds, state, time, polynomial)
    return [name for name, _ in pointers.names]


def _per_row(slots: list) -> str:
    """Load what each row has of its own from tensors outside."""
    lines = []
    for i, slot in enumerate(slots):
        if slot.axis is not None:
            kind = F64 if slot.kind == BOOL else slot.kind
            lines += [
                f"  LANES({kind}, c{i}_{j}); for (int l = 0; l < L; l++) "
                f"c{i}_{j}[l] = U{i}[{j} * B + rows[l < m ? l : 0]];"
                for j in range(slot.size)
            ]
    return "\n".join(lines)


def _lane_names(part: Mapping[str, Node]) -> set[str]:
    """Return the lane arrays that a part loads from."""
    names = set()
    for node in reachable(part.values()):
        if node.op == "load" and "[l]" in node.args[0]:
            names.add(node.args[0].lstrip("(").partition("[")[0])
    return names


def _lane_kind(name: str, node: Node, layout: Layout, time: str) -> str:
    if name in layout.kinds:
        return layout.kinds[name]
    return time if node.kind == BOOL else node.kind


def _stores(
    stores: Mapping[str, Node], names: dict[int, str], layout: Layout, time: str, indent: str
) -> str:
    lines = []
    for name, node in stores.items():
        word = "put_mask" if node.kind == BOOL else "put"
        lines.append(f"{indent}{word}({name}, u, {names[node.number]});")
    return "\n".join(lines)


def _loop(part: Mapping[str, Node], layout: Layout, time: str, indent: str) -> str:
    text, names = statements([*part.values()], indent + "  ")
    stores = _stores(part, names, layout, time, indent + "  ")
    return f"{indent}EACH_VECTOR {{\n{text}\n{stores}\n{indent}}}"


def _output_loop(
    layout: Layout, dim: int, state: str, kind: str, body: Body, evals: int, gives: bool,
    dense: bool,
) -> str:  # fmt: skip
    """Evaluate all outputs that the lanes passed, by Horner's rule."""
    index, extra = layout.counts.index("index"), layout.counts.index("extra")
    lines = [
        "      for (int l = 0; l < m; l++) {",
        "        if (moved[l] == 0 || !(upcoming[l] <= t_next[l])) continue;",
        f"        const int64_t r = rows[l]; int64_t i = C[{index} * B + r];",
        "        while (i < T && SEARCH[r * T + i] <= t_next[l]) {",
        f"          const {kind} theta = ({kind})((SEARCH[r * T + i] - t_old[l]) / dt[l]);",
        f"          {state}* y = YS + (r * T + i) * {dim};",
    ]
    for d in range(dim):
        lines.append(f"          {{ {kind} total = P{body.degree - 1}_{d}[l];")
        lines += [
            f"            total = P{j}_{d}[l] + total * theta;"
            for j in range(body.degree - 2, -1, -1)
        ]
        lines.append(f"            y[{d}] = ({state})(({kind})y_old{d}[l] + total * theta); }}")
    lines += [
        "          i++;\n        }",
        f"        C[{index} * B + r] = i;",
        "        upcoming[l] = i < T ? SEARCH[r * T + i] : INFINITY;",
    ]
    if evals and not dense:
        gain = " - (running[l] != 0 ? 1 : 0)" if gives else ""
        lines.append(f"        C[{extra} * B + r] += {evals}{gain};")
    lines.append("      }")
    return "\n".join(lines)


def _run(
    layout: Layout, column_kinds: Mapping[str, str], state: str, time: str, dim: int, states: bool,
    recorded: bool, unpack: str,
) -> str:  # fmt: skip
    kind, place = layout.places["running"]
    running = "alive[r] != 0"
    fill = ""
    if recorded:
        ended = [layout.places[f"y{d}"] for d in range(dim) if states]
        fill = unpack + "\n" + rows_left_out(column_kinds, layout.places["t"], ended)
    lines = [
        # q: B, running rows, attempts done, attempts allowed now, T, first attempt of the record,
        # whether to begin, milliseconds, attempts a round, attempts of all rows,
        # whether rows that are done are left out
        'extern "C" int64_t run(void** p, int64_t* q, const double* K, int64_t* rows) {',
        "  const Arguments a{p, q, K};",
        "  const int64_t B = q[0]; int64_t n = q[1], done = q[2];",
        f"  {kind}* const alive = ({kind}*)p[{0 if kind == F32 else 1}] + {place} * B;",
        "  const auto began = std::chrono::steady_clock::now();",
        # who runs to the front, the others behind them
        "  auto pack = [&](int64_t n) {",
        f"    return std::stable_partition(rows, rows + n, [&](int64_t r) {{ return {running}; }})"
        " - rows;",
        "  };",
        *(_pack_groups(running) if recorded else ()),
        "  if (q[6]) {",
        "    for (int64_t i = 0; i < n; i += L) begin(a, rows + i, (int)(n - i < L ? n - i : L));",
        "    n = pack(n);",
        "  }",
        "  const int64_t first = n; (void)first;",
        "  const int64_t limit = done + q[3];",
        "  while (n > 0 && done < limit) {",
        "    int64_t most = q[8], used = 0;",
        "    if (most > limit - done) most = limit - done;",
        "    for (int64_t i = 0; i < n; i += L) {",
        "      const int m = (int)(n - i < L ? n - i : L);",
        "      const int64_t s = block(a, rows + i, m, done, most);",
        "      q[9] += s * m;",
        "      if (s > used) used = s;",
        "    }",
        "    done += used;",
        "    int64_t left = 0;",
        "    for (int64_t i = 0; i < n; i++) left += alive[rows[i]] != 0;",
        f"    if (left == 0 || (q[10] && {'2 * left <= n' if recorded else 'true'})) n = pack(n);",
        *(["    else if (q[10]) n = pack_groups(n);"] if recorded else []),
        "    if (std::chrono::duration_cast<std::chrono::milliseconds>(",
        "            std::chrono::steady_clock::now() - began).count() >= q[7]) break;",
        "  }",
        fill,
        "  q[1] = n; q[2] = done;",
        "  return n;",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _pack_groups(running: str) -> list[str]:
    """Bring the groups of `L` rows of which any runs to the front; a shorter last group stays."""
    return [
        "  auto pack_groups = [&](int64_t n) {",
        "    int64_t k = 0;",
        "    for (int64_t i = 0; i < n; i += L) {",
        "      int64_t* const g = rows + i; const int64_t m = n - i < L ? n - i : L;",
        f"      if (m == L && std::none_of(g, g + m, [&](int64_t r) {{ return {running}; }}))",
        "        continue;",
        "      if (k < i) std::swap_ranges(g, g + m, rows + k);",
        "      k += m;",
        "    }",
        "    return k;",
        "  };",
    ]
