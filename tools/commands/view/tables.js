// Sortable tables: where the time goes, and the tensors that the host knows by name.

const kRowsAtFirst = 40;

// columns: {name, of(row), text(value)?, n: number?, mono?, wide?, title(row)?, node(row)?, keep: in one line}; `sorted`: column sorted downwards.
function sortableTable({columns, rows, sorted, limit, label}) {
  const state = {column: sorted, down: true, all: false};
  const head = el('tr');
  const body = el('tbody');
  const more = el('button', {class: 'plain', onclick: () => {
    state.all = true;
    draw();
  }});
  const cell = (column, row) => {
    const value = column.of(row);
    const text = column.node ? column.node(row) : value === undefined || value === null ? '' : column.text ? column.text(value) : `${value}`;
    const kind = column.n ? 'n' : column.wide ? 'text' : column.keep ? 'name' : '';
    return el('td', {class: column.mono ? `${kind} mono` : kind, title: column.title ? column.title(row) : undefined}, text);
  };
  const order = (a, b) => {
    const of = columns[state.column].of;
    const [x, y] = [of(a) ?? -Infinity, of(b) ?? -Infinity];
    const result = typeof x === 'string' || typeof y === 'string' ? `${x}`.localeCompare(`${y}`, undefined, {numeric: true}) : x - y;
    return state.down ? -result : result;
  };
  const draw = () => {
    const list = [...rows].sort(order);
    const shown = state.all ? list : list.slice(0, limit);
    body.replaceChildren(...shown.map((row) => el('tr', {}, ...columns.map((column) => cell(column, row)))));
    more.hidden = shown.length === list.length;
    more.textContent = `Show all ${list.length}`;
    [...head.children].forEach((th, i) => (i === state.column ?
      th.setAttribute('aria-sort', state.down ? 'descending' : 'ascending') : th.removeAttribute('aria-sort')));
  };
  columns.forEach((column, i) => head.append(el('th', {class: column.n ? 'n' : '', scope: 'col'},
      el('button', {onclick: () => {
        state.down = i === state.column ? !state.down : column.n === true;
        state.column = i;
        draw();
      }}, column.name))));
  draw();
  return el('div', {class: 'scroll'}, el('table', {'aria-label': label}, el('thead', {}, head), body), more);
}

// ---- times

function timeRow(name, ops) {
  const used = ops.filter((op) => op.fn.calls > 0);
  const perStep = (of) => sum(used, (op) => of(op) * op.fn.calls);
  const predicted = perStep((op) => op.seconds);
  const measured = doc.executed ? perStep((op) => op.measured || 0) : undefined;
  return {
    name, ops: used, predicted, measured,
    ratio: measured === undefined || predicted === 0 ? undefined : measured / predicted,
    calls: sum(used, (op) => op.fn.calls),
    flops: perStep((op) => op.flops), bytes: perStep((op) => op.bytes), moved: perStep((op) => op.moved || 0),
  };
}

function grouped(nameOf) {
  const groups = new Map();
  for (const op of allOps.filter((each) => each.fn.calls > 0)) {
    const name = nameOf(op);
    groups.has(name) ? groups.get(name).push(op) : groups.set(name, [op]);
  }
  return [...groups].map(([name, ops]) => timeRow(name, ops));
}

// The label with a star for the number of its layer: "h*.fc".
const starred = (op) => (op.fold ? (op.label || op.what).replace(op.fold, op.fold.replace(/\d+$/, '*')) : op.label || op.what);

const kModes = {
  operator: {
    name: 'operator',
    rows: () => allOps.filter((op) => op.fn.calls > 0).map((op) => timeRow(op.label || op.what, [op])),
    columns: [
      {name: 'operator', of: (row) => row.name, wide: true,
        node: (row) => el('a', {href: '#graph', onclick: (event) => {
          event.preventDefault();
          reveal(row.ops[0]);
        }}, row.name)},
      {name: 'does', of: (row) => row.ops[0].what, mono: true},
      {name: 'in', of: (row) => functionText(row.ops[0].fn)},
      {name: 'source', of: (row) => shortSource(row.ops[0].source), title: (row) => sourceText(row.ops[0].source), mono: true},
    ],
  },
  layers: {
    name: 'operator of all layers',
    rows: () => grouped((op) => `${starred(op)}\n${op.what}\n${op.fn.kind}`).map((row) => ({...row, name: starred(row.ops[0])})),
    columns: [
      {name: 'operator', of: (row) => row.name, wide: true},
      {name: 'does', of: (row) => row.ops[0].what, mono: true},
      {name: 'in', of: (row) => row.ops[0].fn.kind},
      {name: 'operators', n: true, of: (row) => row.ops.length},
      {name: 'source', of: (row) => shortSource(row.ops[0].source), title: (row) => sourceText(row.ops[0].source), mono: true},
    ],
  },
  source: {
    name: 'source line',
    rows: () => grouped((op) => sourceText(op.source) || 'unknown'),
    columns: [
      {name: 'source line', of: (row) => row.name, text: (value) => value.split('/').pop(), title: (row) => row.name, mono: true},
      {name: 'operators', n: true, of: (row) => row.ops.length},
      {name: 'such as', of: (row) => [...new Set(row.ops.map((op) => op.what))].slice(0, 4).join(', '), mono: true, wide: true},
    ],
  },
  kernel: {
    name: 'kind',
    rows: () => grouped((op) => op.what),
    columns: [
      {name: 'kind', of: (row) => row.name, mono: true},
      {name: 'operators', n: true, of: (row) => row.ops.length},
    ],
  },
};

// The bar of a share is as long as the share is of the greatest.
function timeColumns(rows) {
  const of = (row) => row.measured ?? row.predicted;
  const total = sum(rows, of);
  const shareOf = (row) => (total > 0 ? of(row) / total : 0);
  const greatest = rows.reduce((most, row) => Math.max(most, shareOf(row)), 0) || 1;
  const share = {name: 'share', n: true, of: shareOf, node: (row) => el('span', {title: percent(shareOf(row))},
      el('span', {class: 'share'}, el('i', {style: `width:${100 * shareOf(row) / greatest}%`})), ` ${percent(shareOf(row))}`)};
  const measured = [
    {name: 'measured', n: true, of: (row) => row.measured, text: timeText},
    {name: 'measured / predicted', n: true, of: (row) => row.ratio, text: times},
  ];
  return [
    {name: 'calls', n: true, of: (row) => row.calls},
    {name: 'predicted', n: true, of: (row) => row.predicted, text: timeText},
    ...(doc.executed ? measured : []), share,
    {name: 'operations', n: true, of: (row) => row.flops, text: countText},
    {name: 'touches', n: true, of: (row) => row.bytes, text: bytesText},
    {name: 'moves', n: true, of: (row) => row.moved, text: (value) => (value > 0 ? bytesText(value) : '')},
  ];
}

function drawTimes(mode) {
  for (const button of document.querySelectorAll('#times .modes button')) {
    button.setAttribute('aria-pressed', button.dataset.mode === mode ? 'true' : 'false');
  }
  const rows = kModes[mode].rows();
  const columns = [...kModes[mode].columns, ...timeColumns(rows)];
  const sorted = columns.findIndex((column) => column.name === (doc.executed ? 'measured' : 'predicted'));
  byId('times-body').replaceChildren(sortableTable({columns, rows, sorted, limit: kRowsAtFirst, label: `Times by ${kModes[mode].name}`}));
}

function writeTimes() {
  byId('times').append(
      el('p', {class: 'about'}, 'Seconds of one step, all calls together, on one rank of each stage. ' + (doc.executed ?
          'Measured times are means over ranks and all steps but the first, without waits for messages and other ranks.' :
          'With --profile the times of a recorded run stand beside the predicted ones.')),
      el('div', {class: 'controls'}, el('span', {class: 'soft'}, 'by'), el('div', {class: 'modes'},
          ...Object.entries(kModes).map(([mode, {name}]) => el('button', {'data-mode': mode, onclick: () => drawTimes(mode)}, name)))),
      el('div', {class: 'card', id: 'times-body'}));
  drawTimes('operator');
}

// ---- tensors

const kSliceWidth = 96;
const kSliceHeight = 34;
const kMostSlices = 64;

// How a tensor is cut: its first two dimensions, the first downwards; each part with the ranks that hold it.
function sliceDrawing(tensor) {
  const ranks = tensor.shape.length;
  if (ranks === 0 || tensor.slices.length === 0 || tensor.slices.length > kMostSlices) {
    return el('span', {class: 'soft'}, tensor.slices.length > kMostSlices ? plural(tensor.slices.length, 'part') : '');
  }
  const cut = [0, 1].map((d) => (d < ranks ? d : -1));
  const part = (values, d, otherwise) => (cut[d] < 0 ? otherwise : values[cut[d]] / tensor.shape[cut[d]]);
  const svg = svgEl('svg', {width: kSliceWidth, height: kSliceHeight, role: 'img', 'aria-label': sliceText(tensor)});
  const [down, right] = ranks === 1 ? [1, 0] : [0, 1];
  for (const [holders, offset, valid] of tensor.slices) {
    const x = part(offset, right, 0) * (kSliceWidth - 2) + 1;
    const y = part(offset, down, 0) * (kSliceHeight - 2) + 1;
    const width = part(valid, right, 1) * (kSliceWidth - 2);
    const height = part(valid, down, 1) * (kSliceHeight - 2);
    svg.append(svgEl('rect', {x, y, width, height, fill: 'var(--hover)', stroke: 'var(--soft)'}));
    if (height >= 11 && width >= 7 * ranges(holders).length + 4) {
      svg.append(svgEl('text', {x: x + width / 2, y: y + height / 2 + 4, 'text-anchor': 'middle'}, ranges(holders)));
    }
  }
  return svg;
}

const sliceText = (tensor) => tensor.slices.map(([holders, offset, valid]) =>
  `rank ${ranges(holders)}: ${valid.map((size, d) => `${offset[d]}\u2013${offset[d] + size - 1}`).join(' \u00d7 ') || 'all'}`).join('\n');

function writeTensors() {
  const local = (tensor) => (tensor.slices.length > 0 ? tensor.slices[0][2] : []);
  const columns = [
    {name: 'tensor', of: (tensor) => tensor.name, wide: true},
    {name: 'kind', of: (tensor) => tensor.kind},
    {name: 'type', of: (tensor) => tensor.type, mono: true},
    {name: 'shape', of: (tensor) => tensor.shape.join(' \u00d7 ') || 'scalar', mono: true},
    {name: 'one part', of: (tensor) => local(tensor).join(' \u00d7 '), mono: true},
    {name: 'elements', n: true, of: (tensor) => tensor.shape.reduce((all, size) => all * size, 1), text: countText},
    {name: 'layout', of: (tensor) => tensor.layout || '', title: (tensor) => tensor.origin, mono: true},
    {name: 'because', of: (tensor) => tensor.origin || '', wide: true},
    {name: 'ranks and parts', of: (tensor) => tensor.slices.length, node: sliceDrawing, title: sliceText},
  ];
  const filter = el('input', {type: 'search', placeholder: 'Filter: name, kind, layout', 'aria-label': 'Filter tensors', oninput: () => draw()});
  const body = el('div', {class: 'card'});
  const draw = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = doc.tensors.filter((tensor) =>
        words.every((word) => `${tensor.name} ${tensor.kind} ${tensor.layout || ''}`.toLowerCase().includes(word)));
    body.replaceChildren(sortableTable({columns, rows, sorted: 5, limit: kRowsAtFirst / 2, label: 'Tensors'}));
  };
  byId('tensors').append(
      el('p', {class: 'about'}, 'What the host knows by name. The drawing shows how the first two dimensions are cut, and which ranks hold each part; ' +
          'ranks that share a part hold replicas.'),
      el('div', {class: 'controls'}, filter), body);
  draw();
}
