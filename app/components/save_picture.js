// Saves what is drawn beside it: plotly's SVG as it stands, or the pixels of a canvas.
export default function (component) {
  const { data, parentElement } = component;
  const bar = parentElement.querySelector(".save");
  const page = parentElement.ownerDocument ?? document, SVG = "http://www.w3.org/2000/svg";

  const inside = (node, wanted) => { // also within components, which have a root of their own
    const found = node.querySelector?.(wanted);
    if (found) return found;
    for (const child of node.querySelectorAll?.("*") ?? []) {
      const deeper = child.shadowRoot && inside(child.shadowRoot, wanted);
      if (deeper) return deeper;
    }
    return null;
  };
  const drawn = () => {
    const place = page.querySelector(`.st-key-${CSS.escape(data.picture)}`);
    const plot = place && inside(place, ".js-plotly-plot"), canvas = place && inside(place, "canvas");
    return plot ? { plot } : canvas ? { canvas } : null;
  };
  const background = () => {
    const css = getComputedStyle(parentElement instanceof Element ? parentElement : bar);
    return css.getPropertyValue("--st-background-color").trim() || getComputedStyle(page.body).backgroundColor;
  };
  const element = (name, attributes) => {
    const made = page.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const svgOf = ({ plot, canvas }) => {
    const box = (plot ?? canvas).getBoundingClientRect();
    const width = Math.round(box.width), height = Math.round(box.height);
    const svg = element("svg", { xmlns: SVG, width, height, viewBox: `0 0 ${width} ${height}` });
    svg.append(element("rect", { width, height, fill: background() }));
    if (canvas) svg.append(element("image", { width, height, href: canvas.toDataURL("image/png") }));
    for (const layer of plot?.querySelectorAll(".main-svg") ?? []) {
      const copy = layer.cloneNode(true);
      copy.style.background = "transparent";
      for (const odd of copy.querySelectorAll(".hoverlayer, .zoomlayer, .draglayer")) odd.remove();
      svg.append(copy);
    }
    return { svg, width, height };
  };
  const blobOf = (text, type) => new Blob([text], { type });
  const save = (blob, ending) => {
    const link = page.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `${data.name}.${ending}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
  const pixels = async (found) => {
    const { svg, width, height } = svgOf(found), image = new Image(), scale = 2;
    image.src = URL.createObjectURL(blobOf(new XMLSerializer().serializeToString(svg), "image/svg+xml"));
    await image.decode();
    const sheet = page.createElement("canvas");
    sheet.width = width * scale; sheet.height = height * scale;
    sheet.getContext("2d").drawImage(image, 0, 0, sheet.width, sheet.height);
    URL.revokeObjectURL(image.src);
    return sheet;
  };
  const kinds = {
    SVG: async (found) => save(blobOf(new XMLSerializer().serializeToString(svgOf(found).svg), "image/svg+xml"), "svg"),
    PNG: async (found) => (await pixels(found)).toBlob((blob) => save(blob, "png"), "image/png"),
    HTML: async (found) => {
      const made = page.implementation.createHTMLDocument(data.title), head = made.createElement("h1");
      const { svg } = svgOf(found);
      head.textContent = data.title;
      made.body.append(head, svg);
      made.body.setAttribute("style", `background: ${background()}; font-family: sans-serif; margin: 2rem`);
      head.setAttribute("style", `font-size: 1.2rem; color: ${getComputedStyle(bar).color}`);
      save(blobOf(`<!doctype html>\n${new XMLSerializer().serializeToString(made)}`, "text/html"), "html");
    },
  };
  const said = page.createElement("span");
  said.setAttribute("role", "status");
  const offered = Object.entries(kinds).filter(([kind]) => kind !== "HTML" || data.page);
  const buttons = offered.map(([kind, make]) => {
    const button = page.createElement("button");
    button.type = "button";
    button.textContent = kind;
    button.setAttribute("aria-label", `Save the picture as ${kind}`);
    button.onclick = async () => {
      const found = drawn();
      said.textContent = found ? "" : "The picture is not on the page now.";
      if (found) await make(found);
    };
    return button;
  });
  const label = page.createElement("span");
  label.textContent = "Picture";
  bar.replaceChildren(label, ...buttons, said);
}
