// Shared by the canvas components: payload, theme, ticks, numbers.
function unpack(data) {
  const raw = data instanceof Uint8Array ? data : new Uint8Array(data);
  const size = new DataView(raw.buffer, raw.byteOffset, 4).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(raw.subarray(4, 4 + size)));
  const body = raw.slice(4 + size).buffer; // copied, so that typed arrays are aligned
  const read = (a) => a.type === "u1" ? new Uint8Array(body, a.at, a.n)
    : a.type === "u2" ? new Uint16Array(body, a.at, a.n) : new Float32Array(body, a.at, a.n);
  return { head, arrays: head.arrays.map(read) };
}
function themeOf(node, palettes) {
  const css = getComputedStyle(node);
  const seen = css.getPropertyValue("--st-background-color").trim() || getComputedStyle(document.body).backgroundColor;
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = seen; probe.fillRect(0, 0, 1, 1);
  const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
  const mode = 0.3 * r + 0.6 * g + 0.1 * b < 128 ? "dark" : "light";
  const font = css.getPropertyValue("--st-font").trim() || "sans-serif";
  return { ...palettes[mode], mode, font, pick: (c) => (typeof c === "string" ? c : c[mode]) };
}
const SUP = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
const power = (n) => "10" + String(n).split("").map((c) => SUP[c]).join("");
function num(v, digits = 3) {
  if (v === null || !Number.isFinite(v)) return "–";
  if (v === 0) return "0";
  const a = Math.abs(v);
  if (a >= 1e-3 && a < 1e5) return String(+v.toPrecision(Math.max(digits, a >= 1000 ? 5 : digits)));
  const [m, e] = v.toExponential(digits - 1).split("e");
  return `${+m}·${power(+e)}`;
}
function ticks(lo, hi, want) { // nice linear ticks inside [lo, hi]
  if (!(hi > lo)) return [lo];
  const raw = (hi - lo) / Math.max(want, 1), base = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * base).find((s) => s >= raw * 0.999);
  const out = [];
  for (let k = Math.ceil(lo / step - 1e-9); k * step <= hi + step * 1e-9; k++) out.push(+(k * step).toPrecision(12));
  return out;
}
function logTicks(lo, hi, want) { // exponents inside [lo, hi] (log10 units)
  const a = Math.ceil(lo - 1e-9), b = Math.floor(hi + 1e-9), every = Math.max(1, Math.ceil((b - a + 1) / want));
  const out = [];
  for (let k = a; k <= b; k++) if ((k - a) % every === 0) out.push(k);
  return out;
}
function fit(canvas, width, height) { // size in device pixels, context in CSS pixels
  const dpr = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * dpr) || canvas.height !== Math.round(height * dpr)) {
    canvas.width = Math.round(width * dpr); canvas.height = Math.round(height * dpr);
    canvas.style.height = `${height}px`;
  }
  const g = canvas.getContext("2d");
  g.setTransform(dpr, 0, 0, dpr, 0, 0); g.clearRect(0, 0, width, height);
  return g;
}
function hex(c) { return [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16)); }
function ramp(stops, n) { // n colours along a scale, as [r, g, b]
  return Array.from({ length: n }, (_, k) => {
    const at = (k / (n - 1)) * (stops.length - 1), i = Math.min(Math.floor(at), stops.length - 2), w = at - i;
    const a = hex(stops[i]), b = hex(stops[i + 1]);
    return a.map((v, j) => Math.round(v + (b[j] - v) * w));
  });
}
function keepState(parent, make) { // one state per mounted component; redraws when its width or theme changes
  const canvas = parent.querySelector("canvas");
  if (!canvas.state) {
    const state = (canvas.state = make(canvas));
    state.observer = new ResizeObserver(() => state.draw && state.draw());
    state.observer.observe(canvas.parentElement);
    state.watch = matchMedia("(prefers-color-scheme: dark)");
    state.again = () => setTimeout(() => state.draw && state.draw(), 50);
    state.watch.addEventListener("change", state.again);
  }
  return canvas.state;
}
