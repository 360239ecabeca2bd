// Draw every figure in the colours of the page, and again when the reader's preference for light or dark changes.
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const lighter = { "#332288": "#9d8df1", "#661100": "#b08968", "#882255": "#d0306e", "#AA4499": "#cf7fc2", "#117733": "#4fb573" };
const narrow = window.matchMedia("(max-width: 760px)");

function themed(layout) {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  const axis = { gridcolor: of("--line"), linecolor: of("--soft"), showline: true };
  const menu = { bgcolor: of("--button"), bordercolor: of("--line"), font: { size: 11, color: "#1d2329" } }; // the pressed one is always light
  return {
    ...layout,
    xaxis: { ...layout.xaxis, ...axis },
    yaxis: { ...layout.yaxis, ...axis },
    updatemenus: (layout.updatemenus || []).map((each) => ({ ...each, ...menu })),
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: of("--ink") },
    hoverlabel: { namelength: -1, bgcolor: of("--paper"), bordercolor: of("--line"), font: { color: of("--ink") } },
    dragmode: narrow.matches ? false : "zoom", // a finger on a phone scrolls the page
    autosize: true,
  };
}

function draw() {
  for (const place of document.querySelectorAll(".drawing")) {
    let text = document.getElementById(place.dataset.spec).textContent;
    if (dark.matches) for (const [from, to] of Object.entries(lighter)) text = text.replaceAll(from, to);
    const spec = JSON.parse(text);
    Plotly.react(place, spec.data, themed(spec.layout), { responsive: true, displaylogo: false, displayModeBar: false });
  }
}

draw();
dark.addEventListener("change", draw);
