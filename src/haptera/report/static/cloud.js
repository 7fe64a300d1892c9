// cloud.js: points in space that turn with the mouse and with the arrow keys, coloured by a number, an angle or a name.

const HUES = 13;
const TURN = Math.PI / 24;
const CLOUD_EYE = { radius: 1.9, height: 0.7 };

// Where there is no WebGL the first two dimensions are better than nothing.
function canTurn() {
  const canvas = document.createElement('canvas');
  return Boolean(canvas.getContext('webgl2') ?? canvas.getContext('webgl'));
}

// Both ends have the same colour, for both ends of a turn are the same direction.
function colours(encoding) {
  if (encoding.cyclic) return Array.from({ length: HUES }, (_, place) => [place / (HUES - 1), `hsl(${(360 * place) / (HUES - 1)}, 72%, 52%)`]);
  return [[0, '#440154'], [0.25, '#3b528b'], [0.5, '#21918c'], [0.75, '#5ec962'], [1, '#fde725']]; // viridis
}

function cloudChart(frame, encoding, rows, slots, width) {
  const [x, y, z] = [encoding.x, encoding.y, encoding.depth].map((name) => (name ? frame.column(name) : null));
  const shown = encoding.value.length ? frame.column(encoding.value[0]) : null;
  const label = (name) => plain(encoding.labels[name] ?? name);
  const turns = z !== null && canTurn();
  const bar = {
    thickness: 10, outlinewidth: 0, tickfont: { color: Theme.color('soft') }, len: 0.6,
    title: shown ? { text: label(shown.name), font: { size: 12, color: Theme.color('soft') } } : {},
  };
  const drawn = shown ? [{ color: '', rows: Array.from(rows) }] : groups(frame, encoding, rows);
  const style = shown ? null : styles(drawn, slots);
  const traces = drawn.map((group) => ({
    type: turns ? 'scatter3d' : 'scatter', mode: 'markers', name: plain(group.color),
    x: group.rows.map((row) => x.at(row)), y: group.rows.map((row) => y.at(row)),
    ...(turns ? { z: group.rows.map((row) => z.at(row)) } : {}),
    marker: {
      size: turns ? 2.5 : 5, opacity: 0.8,
      ...(shown
        ? { color: group.rows.map((row) => shown.at(row)), colorscale: colours(encoding), showscale: width >= 600, colorbar: bar, ...(encoding.limits ? { cmin: encoding.limits[0], cmax: encoding.limits[1] } : {}) }
        : { color: style.color(group) }),
    },
    text: group.rows.map((row) => hoverText(frame, encoding, row, encoding.y)), hovertemplate: '%{text}<extra></extra>',
  }));
  const layout = baseLayout(encoding, width);
  if (!turns) Object.assign(layout.xaxis, { scaleanchor: 'y' });
  if (turns) {
    const axis = (name) => ({
      title: { text: label(name), font: { size: 12, color: Theme.color('soft') } }, showticklabels: false, showspikes: false,
      gridcolor: Theme.color('grid'), zerolinecolor: Theme.color('rule'), backgroundcolor: 'rgba(0,0,0,0)',
    });
    layout.scene = {
      xaxis: axis(encoding.x), yaxis: axis(encoding.y), zaxis: axis(encoding.depth), aspectmode: 'data', dragmode: 'orbit',
      camera: { eye: { x: CLOUD_EYE.radius * Math.cos(0.8), y: CLOUD_EYE.radius * Math.sin(0.8), z: CLOUD_EYE.height } }, uirevision: 'kept',
    };
    layout.margin = { l: 0, r: 0, t: 0, b: 0 };
  }
  const note = z !== null && !turns ? 'this browser has no WebGL: two of the dimensions' : '';
  return { traces, layout, legend: style ? style.legend : [], note, keys: turns ? turnByKeys : null };
}

// Arrows turn the scene around its axis and tilt it; a reader without a mouse sees the back as well.
function turnByKeys(plot) {
  if (plot.dataset.keys) return;
  plot.dataset.keys = 'yes';
  plot.tabIndex = 0;
  plot.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: [-TURN, 0], ArrowRight: [TURN, 0], ArrowUp: [0, TURN], ArrowDown: [0, -TURN] }[event.key];
    if (!step) return;
    event.preventDefault();
    const { eye } = plot._fullLayout.scene.camera; // eslint-disable-line no-underscore-dangle
    const radius = Math.hypot(eye.x, eye.y, eye.z);
    const angle = Math.atan2(eye.y, eye.x) + step[0];
    const tilt = Math.min(Math.max(Math.asin(eye.z / radius) + step[1], -1.5), 1.5);
    const flat = radius * Math.cos(tilt);
    Plotly.relayout(plot, { 'scene.camera.eye': { x: flat * Math.cos(angle), y: flat * Math.sin(angle), z: radius * Math.sin(tilt) } });
  });
}

CHARTS.cloud = cloudChart;
