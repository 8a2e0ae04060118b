// Rows x attempts as coloured cells; one payload replaces the picture in place.
export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const state = keepState(parentElement, (canvas) => ({ canvas, cursor: null, frames: 0 }));
  const { head, arrays } = unpack(data);
  Object.assign(state, { head, cells: arrays[0], edges: arrays[1], strip: arrays[2], ghost: arrays[3] });
  const { canvas } = state, readout = parentElement.querySelector(".readout");
  canvas.setAttribute("aria-label", head.alt);
  const top = 1 << (head.bits - 1), none = top - 1; // highest bit: refused; all lower bits: nothing here
  const left = 52, right = 10, legend = 24, gap = 10, stripH = head.strip ? 40 : 0, axis = 34;

  const code = (r, c) => state.cells[r * head.cols + c] & none;
  const refused = (r, c) => (state.cells[r * head.cols + c] & top) !== 0;
  const value = (k) => { const v = head.low + (k / (none - 1)) * (head.high - head.low); return head.log ? 10 ** v : v; };
  const describe = (r, c) => {
    const k = code(r, c), span = `${state.edges[c]}`, last = state.edges[c + 1] - 1;
    const at = last > state.edges[c] ? `attempts ${span}–${last}` : `attempt ${span}`;
    const where = `row ${head.rows[r]}, ${at}: `;
    if (k === none) return where + "not running";
    const shown = head.categories ? head.categories[k].label : `${head.label} ${num(value(k), head.bits > 8 ? 3 : 2)}${head.unit ? " " + head.unit : ""}`;
    return where + shown + (refused(r, c) ? (last > state.edges[c] ? ", refused here" : ", refused") : "");
  };

  state.draw = () => {
    const width = canvas.parentElement.clientWidth;
    if (!width || !state.head.cols || !state.head.n_rows) return;
    const theme = themeOf(canvas, head.palettes), H = head.height, plotW = width - left - right;
    const plotH = H - legend - axis - (stripH ? stripH + gap : 0), x0 = left, y0 = legend;
    const g = fit(canvas, width, H), total = Math.max(head.x_max, 1), px = (a) => x0 + (a / total) * plotW;
    const rowH = plotH / head.n_rows;
    Object.assign(state, { px, rowH, x0, y0, plotW, plotH, total });
    g.font = `12px ${theme.font}`; g.textBaseline = "middle";
    g.fillStyle = theme.nothing; g.fillRect(x0, y0, plotW, plotH);
    // cells
    const colours = head.categories ? head.categories.map((c) => hex(theme.pick(c.color))) : ramp(head.scale, 256);
    const off = (state.off ??= document.createElement("canvas"));
    off.width = head.cols; off.height = head.n_rows;
    const og = off.getContext("2d"), image = og.createImageData(head.cols, head.n_rows), out = image.data;
    for (let k = 0, n = head.cols * head.n_rows; k < n; k++) {
      const cell = state.cells[k] & none;
      if (cell === none) continue;
      const rgb = colours[head.categories ? cell : Math.round((cell / (none - 1)) * 255)];
      out[4 * k] = rgb[0]; out[4 * k + 1] = rgb[1]; out[4 * k + 2] = rgb[2]; out[4 * k + 3] = 255;
    }
    og.putImageData(image, 0, 0);
    g.imageSmoothingEnabled = false;
    const drawn = px(state.edges[head.cols]) - x0;
    g.drawImage(off, x0, y0, drawn, plotH);
    // refused attempts are hatched as well: runs of neighbours in one rectangle
    if (head.marks) {
      const tile = (state.tile ??= document.createElement("canvas")); tile.width = tile.height = 4;
      const tg = tile.getContext("2d"); tg.clearRect(0, 0, 4, 4); tg.strokeStyle = theme.pick(head.hatch); tg.lineWidth = 1.1;
      tg.beginPath(); for (const s of [-4, 0, 4]) { tg.moveTo(s, 4); tg.lineTo(s + 4, 0); } tg.stroke();
      g.fillStyle = g.createPattern(tile, "repeat"); g.beginPath();
      for (let r = 0; r < head.n_rows; r++) for (let c = 0; c < head.cols; c++) {
        if (!refused(r, c)) continue;
        const from = c; while (c + 1 < head.cols && refused(r, c + 1)) c++;
        g.rect(px(state.edges[from]), y0 + r * rowH, Math.max(px(state.edges[c + 1]) - px(state.edges[from]), 2), Math.max(rowH, 1));
      }
      g.fill();
    }
    // axes
    g.fillStyle = theme.muted; g.strokeStyle = theme.grid; g.lineWidth = 1; g.textAlign = "right";
    g.strokeRect(x0 + 0.5, y0 + 0.5, plotW - 1, plotH - 1);
    const want = head.n_rows / Math.max(2, plotH / 28), every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((s) => s >= want) ?? 1000;
    for (let r = 0; r < head.n_rows; r += every) g.fillText(head.rows[r], x0 - 7, y0 + (r + 0.5) * rowH);
    g.save(); g.translate(10, y0 + plotH / 2); g.rotate(-Math.PI / 2); g.textAlign = "center"; g.fillText(head.row_label, 0, 0); g.restore();
    const bottom = H - axis;
    if (stripH && state.strip) {
      const sy = y0 + plotH + gap, sh = stripH, top = Math.max(head.strip.max, 1), yy = (v) => sy + sh - (v / top) * sh;
      g.fillStyle = theme.nothing; g.fillRect(x0, sy, plotW, sh);
      g.fillStyle = theme.band_inner; g.beginPath(); g.moveTo(x0, sy + sh);
      for (let c = 0; c < head.cols; c++) { g.lineTo(px(state.edges[c]), yy(state.strip[c])); g.lineTo(px(state.edges[c + 1]), yy(state.strip[c])); }
      g.lineTo(px(state.edges[head.cols]), sy + sh); g.fill();
      if (state.ghost && state.ghost.length) {
        g.strokeStyle = theme.text; g.setLineDash([4, 3]); g.beginPath(); const n = state.ghost.length / 2;
        for (let k = 0; k < n; k++) { const X = Math.min(px(state.ghost[k]), x0 + plotW), Y = yy(state.ghost[n + k]); k ? g.lineTo(X, Y) : g.moveTo(X, Y); }
        g.stroke(); g.setLineDash([]);
      }
      g.fillStyle = theme.muted; g.textAlign = "right";
      g.fillText(head.strip.max, x0 - 7, sy + 6); g.fillText("0", x0 - 7, sy + sh - 4);
      g.textAlign = "right"; g.font = `11px ${theme.font}`; g.fillStyle = theme.text;
      g.fillText(head.strip.label, x0 + plotW - 6, sy + 9); g.font = `12px ${theme.font}`;
    }
    g.fillStyle = theme.muted; g.textAlign = "center";
    for (const t of ticks(0, total, Math.max(2, Math.floor(plotW / 90)))) { if (t === Math.round(t)) g.fillText(t, Math.min(px(t), width - 14), bottom + 10); }
    g.fillText("attempt", x0 + plotW / 2, bottom + 25);
    // legend
    g.textAlign = "left"; let lx = x0;
    if (head.categories) {
      for (const cat of head.categories) {
        const w = g.measureText(cat.label).width + 28; if (lx + w > width) break;
        g.fillStyle = theme.pick(cat.color); g.fillRect(lx, 5, 12, 12); g.fillStyle = theme.text; g.fillText(cat.label, lx + 17, 12); lx += w;
      }
    } else {
      const bar = Math.min(180, plotW * 0.3), low = head.log ? 10 ** head.low : head.low, high = head.log ? 10 ** head.high : head.high;
      g.fillStyle = theme.text;
      const name = head.label + (head.unit ? ` (${head.unit})` : ""); g.fillText(name, lx, 12); lx += g.measureText(name).width + 12;
      g.fillStyle = theme.muted; g.fillText(num(low, 2), lx, 12); lx += g.measureText(num(low, 2)).width + 6;
      colours.forEach((c, k) => { g.fillStyle = `rgb(${c})`; g.fillRect(lx + (k / 256) * bar, 6, bar / 256 + 1, 11); });
      g.fillStyle = theme.muted; g.fillText(num(high, 2), lx + bar + 6, 12); lx += bar + g.measureText(num(high, 2)).width + 20;
    }
    if (head.marks && !head.categories && lx + 90 < width) {
      g.fillStyle = theme.nothing; g.fillRect(lx, 5, 14, 13); g.fillStyle = g.createPattern(state.tile, "repeat"); g.fillRect(lx, 5, 14, 13);
      g.strokeStyle = theme.muted; g.strokeRect(lx + 0.5, 5.5, 13, 12); g.fillStyle = theme.text; g.fillText("refused", lx + 19, 12);
    }
    // picked rows, cursor
    for (const p of head.picked) {
      const y = y0 + (p.row + 0.5) * rowH; g.fillStyle = g.strokeStyle = theme.pick(p.color);
      g.beginPath(); g.moveTo(x0 - 1, y); g.lineTo(x0 - 7, y - 5); g.lineTo(x0 - 7, y + 5); g.fill();
      g.strokeRect(x0 + 0.5, y0 + p.row * rowH - 0.5, plotW - 1, rowH + 1);
    }
    const cur = state.cursor;
    if (cur && cur.r < head.n_rows && cur.c < head.cols) {
      const cx = px(state.edges[cur.c]), cw = Math.max(px(state.edges[cur.c + 1]) - cx, 3);
      g.strokeStyle = theme.text; g.lineWidth = 2; g.strokeRect(cx - 1, y0 + cur.r * rowH - 1, cw + 2, Math.max(rowH, 3) + 2);
    }
    const line = cur && cur.r < head.n_rows && cur.c < head.cols ? describe(cur.r, cur.c) : head.hint;
    if (readout.textContent !== line) readout.textContent = line;
    canvas.dataset.frames = ++state.frames; canvas.dataset.attempts = state.edges[head.cols];
    canvas.dataset.theme = theme.mode;
  };

  const cell = (e) => {
    const box = canvas.getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
    const attempt = ((x - state.x0) / state.plotW) * state.total, r = Math.floor((y - state.y0) / state.rowH);
    if (attempt < 0 || r < 0 || r >= head.n_rows || attempt >= state.edges[head.cols]) return null;
    let c = 0; while (c + 1 < head.cols && state.edges[c + 1] <= attempt) c++;
    return { r, c };
  };
  const pick = (at) => setTriggerValue("pick", { row: at.r, col: at.c, instance: head.rows[at.r], attempt: state.edges[at.c], at: Date.now() });
  canvas.onmousemove = (e) => { const at = cell(e); if (at) { state.cursor = at; state.draw(); } };
  canvas.onmouseleave = () => { if (document.activeElement !== canvas && canvas.getRootNode().activeElement !== canvas) { state.cursor = null; state.draw(); } };
  canvas.onclick = (e) => { const at = cell(e); if (at) { state.cursor = at; state.draw(); pick(at); } };
  canvas.onkeydown = (e) => {
    const cur = state.cursor ?? { r: 0, c: 0 }, far = e.shiftKey ? 10 : 1;
    const moves = { ArrowLeft: [0, -far], ArrowRight: [0, far], ArrowUp: [-far, 0], ArrowDown: [far, 0], Home: [0, -head.cols], End: [0, head.cols], PageUp: [-head.n_rows, 0], PageDown: [head.n_rows, 0] };
    if (e.key === "Enter" || e.key === " ") { if (head.cols) pick(cur); } else if (moves[e.key]) {
      const clamp = (v, n) => Math.max(0, Math.min(n - 1, v));
      state.cursor = { r: clamp(cur.r + moves[e.key][0], head.n_rows), c: clamp(cur.c + moves[e.key][1], head.cols) }; state.draw();
    } else if (e.key === "Escape") { state.cursor = null; state.draw(); } else return;
    e.preventDefault(); e.stopPropagation();
  };
  state.draw();
}
