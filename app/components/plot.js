// Lines, bands, stacked shares and points over one x axis; one payload replaces the picture in place.
export default function (component) {
  const { data, parentElement } = component;
  const state = keepState(parentElement, (canvas) => ({ canvas, at: null, frames: 0 }));
  const { head, arrays } = unpack(data), { canvas } = state;
  const readout = parentElement.querySelector(".readout");
  Object.assign(state, { head, arrays });
  canvas.setAttribute("aria-label", head.alt);
  const left = 58, right = 12, axis = 36, A = (k) => arrays[k];
  const log10 = (v) => (v > 0 ? Math.log10(v) : NaN);

  state.draw = () => {
    const width = canvas.parentElement.clientWidth;
    if (!width) return;
    const theme = themeOf(canvas, head.palettes), H = head.height;
    const g = fit(canvas, width, H);
    g.font = `12px ${theme.font}`; g.textBaseline = "middle";
    // legend first: it decides how much height is left
    const rows = []; let line = [], used = 0;
    for (const item of head.legend) {
      const w = g.measureText(item.label).width + 34;
      if (used + w > width - left && line.length) { rows.push(line); line = []; used = 0; }
      line.push({ ...item, x: left + used }); used += w;
    }
    if (line.length) rows.push(line);
    const top = 6 + 18 * rows.length, plotW = width - left - right, plotH = H - top - axis;
    rows.forEach((row, r) => row.forEach((item) => {
      const y = 8 + 18 * r, c = theme.pick(item.color);
      g.strokeStyle = g.fillStyle = c; g.lineWidth = 2; g.setLineDash(item.dash ?? []);
      if (item.shape === "box") g.fillRect(item.x, y - 5, 18, 10);
      else if (item.shape === "cross") { g.setLineDash([]); mark(g, item.x + 9, y, "cross", 4); }
      else if (item.shape === "dot") mark(g, item.x + 9, y, "dot", 4);
      else { g.beginPath(); g.moveTo(item.x, y); g.lineTo(item.x + 18, y); g.stroke(); }
      g.setLineDash([]); g.fillStyle = theme.text; g.textAlign = "left"; g.fillText(item.label, item.x + 23, y);
    }));
    const [xa, xb] = head.x.range, [ya, yb] = head.y.range; // y in log10 units where log
    const px = (v) => left + ((v - xa) / (xb - xa || 1)) * plotW;
    const py = (v) => { const u = head.y.log ? log10(v) : v; return top + plotH - ((u - ya) / (yb - ya || 1)) * plotH; };
    // grid and axes
    g.strokeStyle = theme.grid; g.lineWidth = 1; g.fillStyle = theme.muted; g.textAlign = "right";
    const yticks = head.y.log ? logTicks(ya, yb, plotH / 26) : ticks(ya, yb, plotH / 34);
    for (const t of yticks) {
      const y = Math.round(top + plotH - ((t - ya) / (yb - ya || 1)) * plotH) + 0.5;
      g.beginPath(); g.moveTo(left, y); g.lineTo(left + plotW, y); g.stroke();
      g.fillText(head.y.log ? power(t) : head.y.percent ? `${Math.round(t * 100)} %` : num(t), left - 7, y);
    }
    g.textAlign = "center";
    for (const t of ticks(xa, xb, Math.max(2, plotW / 90))) {
      if (head.x.whole && t !== Math.round(t)) continue;
      const x = px(t); g.beginPath(); g.moveTo(Math.round(x) + 0.5, top + plotH); g.lineTo(Math.round(x) + 0.5, top + plotH + 4); g.stroke();
      g.fillText(num(t), Math.min(x, width - 14), top + plotH + 13);
    }
    g.fillText(head.x.label, left + plotW / 2, H - 8);
    g.save(); g.translate(9, top + plotH / 2); g.rotate(-Math.PI / 2); g.fillText(head.y.label, 0, 0); g.restore();
    // layers
    g.save(); g.beginPath(); g.rect(left, top, plotW, plotH); g.clip();
    const path = (xs, ys, from = 0, step = 1, end = xs.length, move = true) => {
      for (let k = from; k !== end; k += step) {
        const X = px(xs[k]), Y = py(ys[k]);
        if (!Number.isFinite(Y)) { move = true; continue; }
        if (move) g.moveTo(X, Y); else g.lineTo(X, Y); move = false;
      }
    };
    for (const layer of head.layers) {
      const c = theme.pick(layer.color), xs = A(layer.x);
      g.strokeStyle = g.fillStyle = c; g.lineWidth = layer.width ?? 1.6; g.setLineDash(layer.dash ?? []); g.lineJoin = "round";
      if (layer.kind === "line") { g.beginPath(); path(xs, A(layer.y)); g.stroke(); }
      else if (layer.kind === "band") {
        const lo = A(layer.low), hi = A(layer.high);
        g.beginPath(); path(xs, hi); path(xs, lo, xs.length - 1, -1, -1, false); g.closePath(); g.fill();
      } else if (layer.kind === "bars") { // from low to high over [x[k], x[k+1]]
        const lo = A(layer.low), hi = A(layer.high);
        for (let k = 0; k < lo.length; k++) { const x = px(xs[k]), y = py(hi[k]); g.fillRect(x, y, px(xs[k + 1]) - x + 0.4, py(lo[k]) - y); }
      } else if (layer.kind === "points") { const ys = A(layer.y); for (let k = 0; k < xs.length; k++) mark(g, px(xs[k]), py(ys[k]), layer.shape, 3.2); }
      else if (layer.kind === "level") { g.beginPath(); g.moveTo(left, py(layer.at)); g.lineTo(left + plotW, py(layer.at)); g.stroke(); }
      g.setLineDash([]);
    }
    g.restore();
    // cursor and readout
    Object.assign(state, { left, plotW, px, py, xa, xb });
    let text = head.hint;
    if (state.at !== null && head.read.length) {
      const xs = A(head.read[0].x); let best = 0, gap = Infinity;
      for (let k = 0; k < xs.length; k++) { const d = Math.abs(xs[k] - state.at); if (d < gap) { gap = d; best = k; } }
      const x = px(xs[best]);
      g.strokeStyle = theme.muted; g.lineWidth = 1; g.setLineDash([3, 3]); g.beginPath(); g.moveTo(x, top); g.lineTo(x, top + plotH); g.stroke(); g.setLineDash([]);
      text = `${head.x.short} ${num(xs[best], 4)}: ` + head.read.map((s) => `${s.label} ${head.y.percent ? Math.round(A(s.y)[best] * 100) + " %" : num(A(s.y)[best])}`).join(" · ");
    }
    if (readout.textContent !== text) readout.textContent = text;
    canvas.dataset.frames = ++state.frames; canvas.dataset.theme = theme.mode;
  };
  const mark = (g, x, y, shape, r) => {
    if (!Number.isFinite(x + y)) return;
    g.beginPath();
    if (shape === "cross") { g.moveTo(x - r, y - r); g.lineTo(x + r, y + r); g.moveTo(x + r, y - r); g.lineTo(x - r, y + r); g.lineWidth = 1.6; g.stroke(); }
    else { g.arc(x, y, r, 0, 7); g.fill(); }
  };
  canvas.onmousemove = (e) => {
    if (!head.read.length) return;
    const x = e.clientX - canvas.getBoundingClientRect().left;
    state.at = Math.max(state.xa, Math.min(state.xb, state.xa + ((x - left) / state.plotW) * (state.xb - state.xa))); state.draw();
  };
  canvas.onmouseleave = () => { state.at = null; state.draw(); };
  canvas.onkeydown = (e) => {
    if (!head.read.length || !["ArrowLeft", "ArrowRight", "Home", "End", "Escape"].includes(e.key)) return;
    const xs = A(head.read[0].x), now = state.at === null ? 0 : xs.reduce((b, v, k) => (Math.abs(v - state.at) < Math.abs(xs[b] - state.at) ? k : b), 0);
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: xs.length - 1 }[e.key];
    state.at = e.key === "Escape" ? null : xs[Math.max(0, Math.min(xs.length - 1, to))]; state.draw();
    e.preventDefault(); e.stopPropagation();
  };
  state.draw();
}
