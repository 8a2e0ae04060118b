"""C++ text that writes attempts into the record, `(attempt, row)`: at what a kernel stores them.

Rows that stand side by side are written as vectors. Those that have ended are kept among the
others until half of all have, so that this stays so, and leave only zeros.
"""

from collections.abc import Mapping, Sequence

from solver.compiled.expression import BOOL, I64, VECTORS

PLAIN = (("R_t", "t_old"), ("R_dt", "tried"), ("R_ratio", "own"))
MASKS = (("R_moved", "moved"), ("R_running", "was"))


def masked_stores(values: Mapping[str, tuple[str, str]], was: str) -> str:
    """Write one vector of an attempt, where its rows stand side by side.

    Args:
        values: array -> kind and name of what it gets.
        was: name of the mask of the rows that ran; the others get 0, and their time.
    """
    lines = ["      if (together) {", "        const int64_t w = at + rows[0] + u * W;"]
    for array, (kind, name) in values.items():
        if array == "R_t":
            value = name
        elif kind in (BOOL, I64):
            value = f"{name} & {was}"
        else:
            value = f"pick({was}, {name}, {VECTORS[kind]}{{}})"
        lines.append(f"        record({array} + w, {value});")
    lines.append("      }")
    return "\n".join(lines)


def in_lanes(
    column_kinds: Mapping[str, str], dim: int, states: bool, starts: bool, degree: int
) -> str:
    """Write an attempt row by row, and what is larger than a number."""
    lines = [
        "    if (!together) for (int l = 0; l < m; l++) {",
        "      const int64_t w = at + rows[l]; const bool ran = was[l] != 0;",
        "      R_t[w] = t_old[l];",
    ]
    columns = [*PLAIN[1:], *((f"R_{name}", f"col_{name}") for name in column_kinds)]
    lines += [f"      {array}[w] = ran ? {name}[l] : 0;" for array, name in columns]
    lines += [f"      {array}[w] = {name}[l] != 0;" for array, name in MASKS]
    lines.append("    }")
    if not states and not starts:
        return "\n".join(lines)
    lines.append("    for (int l = 0; l < m; l++) {\n      const int64_t w = at + rows[l];")
    if states:
        lines += [f"      R_y[w * {dim} + {d}] = y{d}[l];" for d in range(dim)]
    if starts:
        lines.append("      R_step[w] = dt[l];")
        lines += [f"      R_start[w * {dim} + {d}] = y_old{d}[l];" for d in range(dim)]
        lines += [
            f"      R_polynomial[w * {degree * dim} + {j * dim + d}] = P{j}_{d}[l];"
            for j in range(degree)
            for d in range(dim)
        ]
    lines.append("    }")
    return "\n".join(lines)


def rest_of_block(column_kinds: Mapping[str, str], dim: int, states: bool) -> str:
    """Write what rows do that all ended before the others: nothing."""
    lines = [
        "  for (int64_t s = done; s < start + most; s++) {",
        "    const int64_t at = (s - a.q[5]) * B;",
        "    if (together) {",
        "      memcpy(R_t + at + rows[0], t, sizeof(t));",
    ]
    lines += [
        f"      memset({name} + at + rows[0], 0, L * sizeof(*{name}));"
        for name in _zeroed(column_kinds)
    ]
    lines += [
        "    } else for (int l = 0; l < m; l++) {",
        "      const int64_t w = at + rows[l]; R_t[w] = t[l];",
    ]
    lines += [f"      {name}[w] = 0;" for name in _zeroed(column_kinds)]
    lines.append("    }")
    if states:
        lines += [
            f"    for (int l = 0; l < m; l++) R_y[(at + rows[l]) * {dim} + {d}] = y{d}[l];"
            for d in range(dim)
        ]
    lines.append("  }")
    return "\n".join(lines)


def rows_left_out(
    column_kinds: Mapping[str, str], time: tuple[str, int], states: Sequence[tuple[str, int]]
) -> str:
    """Write what rows do that had ended before the call; `first` is the first of them in `rows`.

    Args:
        column_kinds: types of further columns.
        time, states: where times and states are kept: kind and place.
    """
    kind, place = time
    lines = [
        "  const int64_t used = done - q[2];",
        "  for (int64_t i = first, j; i < B; i = j) {",
        "    for (j = i + 1; j < B && rows[j] == rows[i] + (j - i); j++) {}",
        "    const int64_t r = rows[i], count = j - i;",
        "    for (int64_t s = 0; s < used; s++) {",
        "      const int64_t w = s * B + r;",
        f"      memcpy(R_t + w, S_{kind} + {place} * B + r, count * sizeof(*R_t));",
    ]
    lines += [
        f"      memset({name} + w, 0, count * sizeof(*{name}));" for name in _zeroed(column_kinds)
    ]
    dim = len(states)
    lines += [
        f"      for (int64_t c = 0; c < count; c++) "
        f"R_y[(w + c) * {dim} + {d}] = S_{kind}[{place} * B + r + c];"
        for d, (kind, place) in enumerate(states)
    ]
    lines += ["    }", "  }"]
    lines += ["#if defined(__x86_64__)", "  _mm_sfence();", "#endif"]
    return "\n".join(lines)


def _zeroed(column_kinds: Mapping[str, str]) -> list[str]:
    names = [array for array, _ in (*PLAIN[1:], *MASKS)]
    return [*names, *(f"R_{name}" for name in column_kinds)]
