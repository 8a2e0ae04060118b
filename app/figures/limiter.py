"""What limited the step: accuracy, a bound, the end of the span, an event?"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.grouping import group_attempts
from app.figures.step_size import X_TITLES, X
from app.figures.style import empty_figure, hatched, new_figure, share_text
from app.theme import Theme

MOST_BARS = 240
PATTERNS: Mapping[str, str] = {
    "accuracy": "",
    "dt_min": "x",
    "dt_max": "/",
    "end of span": ".",
    "event": "+",
    "jump": "\\",
    "non-finite": "|",
    "first step": "-",
    "Newton": "|",
    "stability": "/",
}
WORDS: Mapping[str, str] = {
    "accuracy": "accuracy",
    "dt_min": "smallest step allowed",
    "dt_max": "largest step allowed",
    "end of span": "end of the span",
    "event": "event",
    "jump": "jump in the right-hand side",
    "non-finite": "value not finite",
    "first step": "first step",
    "Newton": "implicit equations not solved",
    "stability": "stability",
}


def limiter_ribbon_figure(
    steps: pd.DataFrame,
    colours: Theme,
    labels: Mapping[int, str],
    *,
    x: X = "t",
    x_range: Sequence[float] | None = None,
) -> go.Figure:
    """Draw one band along the attempts of a row, each stretch split into what limited its steps.

    Args:
        steps: attempts of one row in order: `attempt`, `t`, `dt`, `accepted`, `limiter` [code].
        labels: code -> label, as the run's columns tell.
    """
    if steps.empty or "limiter" not in steps:
        return empty_figure(colours, "What limited the steps was not recorded (statistic limiter).")
    figure = new_figure(colours, X_TITLES[x], "share of attempts  [%]", x_range=x_range, height=150)
    groups = group_attempts(steps, x, MOST_BARS)
    codes = steps["limiter"].to_numpy(dtype=np.int64)
    counts = np.bincount(groups.of).astype(float)
    for code in sorted(set(codes.tolist())):
        label = labels.get(code, f"code {code}")
        share = np.bincount(groups.of, weights=codes == code, minlength=len(counts)) / counts
        on = share > 0
        figure.add_bar(
            x=groups.middle[on],
            y=100 * share[on],
            width=groups.width[on],
            name=f"{WORDS.get(label, label)} ({share_text(float(np.mean(codes == code)))})",
            marker=fill(label, colours),
            customdata=np.stack([groups.first[on], groups.last[on]], axis=-1),
            hovertemplate=f"{WORDS.get(label, label)}: %{{y:.0f}} %"
            "<br>attempts %{customdata[0]} to %{customdata[1]}<extra></extra>",
        )
    figure.update_layout(barmode="stack", bargap=0, showlegend=True)
    figure.update_yaxes(range=[0, 100], dtick=50, showgrid=False)
    return figure


def limiter_shares_figure(shares: pd.DataFrame, colours: Theme) -> go.Figure:
    """Stack, along the attempts of a whole solve, the share of rows that each cause limited.

    Args:
        shares: `attempt` and one column a label [0 to 1], as the run's `limiter_shares` gives.
    """
    names = [name for name in shares.columns if name != "attempt"]
    used = [name for name in names if np.nansum(shares[name].to_numpy(dtype=np.float64)) > 0]
    if shares.empty or not used:
        return empty_figure(colours, "What limited the steps was not recorded (statistic limiter).")
    figure = new_figure(colours, "attempt number", "share of active rows  [%]")
    attempt = shares["attempt"].to_numpy(dtype=np.float64)
    gaps = np.diff(attempt, prepend=attempt[0] - 1, append=attempt[-1] + 1)
    left, right = gaps[:-1] / 2, gaps[1:] / 2  # bins differ by one attempt; no slit between them
    if len(attempt) > 1:
        left[0], right[-1] = right[0], left[-1]
    total = shares[used].sum(axis=1).replace(0, np.nan)
    for name in used:
        mean = float(np.nanmean((shares[name] / total).to_numpy(dtype=np.float64)))
        figure.add_bar(
            x=attempt + (right - left) / 2,
            y=100 * shares[name].to_numpy(dtype=np.float64),
            width=left + right,
            name=f"{WORDS.get(name, name)} ({share_text(mean)})",
            marker=fill(name, colours),
            hovertemplate=f"{WORDS.get(name, name)}: %{{y:.1f}} %<br>attempt %{{x:.0f}}"
            "<extra></extra>",
        )
    figure.update_layout(barmode="stack", bargap=0, showlegend=True)
    figure.update_yaxes(range=[0, 100], dtick=25)
    return figure


def fill(label: str, colours: Theme) -> dict[str, object]:
    """Return the colour and hatching of a label; unknown labels look alike and differ by name."""
    return hatched(colours.limiters.get(label, colours.ghost), PATTERNS.get(label, ""), colours)
