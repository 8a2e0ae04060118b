// Draws the figures of a report in the colours the reader's system asks for, in light ones on paper.
(() => {
  const told = JSON.parse(document.getElementById("figures").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  // A fresh copy each time: plotly writes into what it is given.
  const resolved = (value) => {
    if (Array.isArray(value)) return value.map(resolved);
    if (value === null || typeof value !== "object") return value;
    if ("$pool" in value) return structuredClone(told.pool[value.$pool]);
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolved(item)]));
  };

  const save = (format, name) => ({
    name: `Save as ${format.toUpperCase()}`,
    title: `Save as ${format.toUpperCase()}`,
    icon: window.Plotly.Icons.camera,
    click: (plot) => window.Plotly.downloadImage(plot, { format, filename: name, scale: 2 }),
  });

  const draw = (mode) => {
    told.figures.forEach((figure, number) => {
      const place = document.getElementById(`figure-${number}`);
      const { data, layout } = resolved(figure[mode]);
      window.Plotly.react(place, data, { ...layout, autosize: true, width: place.clientWidth }, {
        displaylogo: false,
        responsive: true,
        modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d", "toImage"],
        modeBarButtonsToAdd: [save("svg", figure.name), save("png", figure.name)],
      });
    });
    document.documentElement.dataset.drawn = mode;
  };

  const paper = window.matchMedia("print");
  const now = () => draw(dark.matches && !paper.matches ? "dark" : "light");
  now();
  dark.addEventListener("change", now);
  paper.addEventListener("change", now);
  window.addEventListener("resize", now);
  window.addEventListener("beforeprint", () => draw("light"));
  window.addEventListener("afterprint", now);
})();
