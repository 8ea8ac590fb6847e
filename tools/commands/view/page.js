'use strict';
// The document of `weft view` (tools/analysis/document.h), helpers, the head of the page, and the detail panel.

const doc = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);

// An element: attributes, then children (strings become text). `on...` attributes are listeners.
function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svgEl(tag, attributes, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) {
      node.addEventListener(name.slice(2), value);
    } else if (value !== undefined && value !== null && value !== false) {
      node.setAttribute(name, value === true ? '' : value);
    }
  }
  node.append(...children.filter((child) => child !== undefined && child !== null && child !== ''));
  return node;
}

const plural = (count, one, many) => `${count} ${count === 1 ? one : many || one + 's'}`;
const sum = (list, of) => list.reduce((total, entry) => total + of(entry), 0);

function scaled(value, steps, base) {
  let unit = 0;
  while (unit + 1 < steps.length && Math.abs(value) >= base) {
    value /= base;
    ++unit;
  }
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${steps[unit]}`;
}

const bytesText = (bytes) => scaled(bytes, ['B', 'KiB', 'MiB', 'GiB', 'TiB'], 1024);
const countText = (count) => scaled(count, ['', 'k', 'M', 'G', 'T', 'P'], 1000).trim();

function timeText(seconds) {
  const units = [['s', 1], ['ms', 1e3], ['\u00b5s', 1e6], ['ns', 1e9]];
  const size = Math.abs(seconds);
  const [unit, factor] = units.find(([, each]) => size * each >= 0.9995) || units[3];
  const value = size * factor;
  return size < 1e-12 ? '0' : `${seconds < 0 ? '\u2212' : ''}${value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2)} ${unit}`;
}

const percent = (part) => `${(100 * part).toFixed(1)} %`;
const times = (ratio) => (isFinite(ratio) ? `\u00d7 ${ratio.toFixed(ratio >= 100 ? 0 : ratio >= 10 ? 1 : 2)}` : '\u2013');

// "some/where/model.cc:41" as its last part, the whole as the title.
const sourceText = (number) => (number < 0 ? '' : doc.sources[number]);
const shortSource = (number) => sourceText(number).split('/').pop();

function rankRange(first, count) {
  return count === 1 ? `rank ${first}` : `ranks ${first}\u2013${first + count - 1}`;
}

// 0, 1, 2, 5, 6 as "0-2, 5-6".
function ranges(numbers) {
  const parts = [];
  for (let i = 0; i < numbers.length; ++i) {
    const from = numbers[i];
    while (i + 1 < numbers.length && numbers[i + 1] === numbers[i] + 1) {
      ++i;
    }
    parts.push(from === numbers[i] ? `${from}` : `${from}\u2013${numbers[i]}`);
  }
  return parts.join(', ');
}

const kKinds = {
  forward: {letter: 'F', name: 'forward'},
  backward: {letter: 'B', name: 'backward'},
  input_grad: {letter: 'I', name: 'gradient of inputs'},
  weight_grad: {letter: 'W', name: 'gradient of weights'},
};
const isPerMicroBatch = (kind) => kind in kKinds;
const kindClass = (kind) => (isPerMicroBatch(kind) ? kind : 'once');

// Memory classes of the curve, from the bottom up.
const kClasses = [
  ['parameter', 'parameters'],
  ['state', 'optimizer state'],
  ['accumulator', 'gradient sums'],
  ['other', 'inputs, outputs, constants'],
  ['mailbox', 'mailboxes'],
  ['workspace', 'scratch memory of kernels'],
  ['activation', 'activations'],
  ['transient', 'transients'],
];

// Operators of the whole plan with their place; `key` names one.
const allOps = [];
doc.submeshes.forEach((submesh, b) => {
  submesh.functions.forEach((fn, f) => {
    fn.submesh = b;
    fn.index = f;
    fn.ops.forEach((op, i) => {
      op.key = `${b}.${f}.${i}`;
      op.fn = fn;
      op.order = i;
      allOps.push(op);
    });
    fn.seconds = sum(fn.ops, (op) => op.seconds);
    fn.measured = fn.calls > 0 && doc.executed ? sum(fn.ops, (op) => op.measured || 0) : undefined;
  });
  submesh.stages = [...new Set(submesh.functions.filter((fn) => isPerMicroBatch(fn.kind)).map((fn) => fn.stage))];
});
const opByKey = new Map(allOps.map((op) => [op.key, op]));
const moves = (op) => op.moved !== undefined;
const manySubmeshes = doc.submeshes.length > 1;
const functionText = (fn) => (manySubmeshes ? `stage ${fn.stage}, ${fn.name}` : fn.name);

// Who makes what an operator reads: the last one before it, in the order of the functions, that writes that memory.
function linkOps() {
  for (const submesh of doc.submeshes) {
    const writer = new Map();
    for (const fn of submesh.functions) {
      for (const op of fn.ops) {
        op.makers = op.in.map((buffer) => writer.get(submesh.buffers[buffer][4]));
        op.readers = op.readers || [];
        op.makers.filter(Boolean).forEach((maker) => maker.readers.push(op));
        op.out.forEach((buffer) => writer.set(submesh.buffers[buffer][4], op));
      }
    }
  }
  const ends = new Map();
  for (const op of allOps.filter((each) => each.channel !== undefined)) {
    const pair = ends.get(op.channel) || {};
    pair[op.what] = op;
    ends.set(op.channel, pair);
  }
  for (const {send, receive} of ends.values()) {
    if (send && receive) {
      send.peer = receive;
      receive.peer = send;
      send.readers.push(receive);
      receive.makers.push(send);
    }
  }
}

const tensorsByName = new Map(doc.tensors.map((tensor) => [tensor.name, tensor]));

// ---- tooltip

function showTip(text, x, y) {
  const tip = byId('tip');
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, window.innerWidth - box.width - 8))}px`;
  tip.style.top = `${y + 18 + box.height > window.innerHeight ? Math.max(4, y - box.height - 10) : y + 18}px`;
}

function hideTip() {
  byId('tip').hidden = true;
}

// ---- detail panel

let detailOpener = null;

function showDetail(title, ...content) {
  if (byId('detail').hidden) {
    detailOpener = document.activeElement;
  }
  const panel = byId('detail');
  const close = el('button', {class: 'plain close', onclick: closeDetail}, 'Close');
  panel.replaceChildren(el('h2', {}, title), close, ...content);
  panel.hidden = false;
  panel.scrollTop = 0;
  document.body.classList.add('with-detail');
}

function closeDetail() {
  byId('detail').hidden = true;
  document.body.classList.remove('with-detail');
  document.querySelectorAll('.op[aria-current]').forEach((row) => row.removeAttribute('aria-current'));
  if (detailOpener && document.contains(detailOpener)) {
    detailOpener.focus();
  }
}

function definitions(pairs) {
  const list = el('dl');
  for (const [name, value] of pairs) {
    if (value !== undefined && value !== null && value !== '') {
      list.append(el('dt', {}, name), el('dd', {}, value));
    }
  }
  return list;
}

function bufferItem(submesh, buffer, links, word) {
  const [label, memory, shape, bytes] = submesh.buffers[buffer];
  const item = el('li', {}, el('code', {}, shape), ` ${bytesText(bytes)}, ${memory}`, label ? ` of ${label}` : '');
  const tensor = tensorsByName.get(label);
  if (tensor && tensor.layout) {
    item.append(el('div', {class: 'soft'}, `layout ${tensor.layout} of ${tensor.shape.join(' \u00d7 ') || 'a scalar'}`));
  }
  for (const other of links.filter(Boolean)) {
    item.append(
        el('div', {}, `${word} `, el('button', {class: 'link', onclick: () => reveal(other)}, other.label || other.what),
            ` in ${functionText(other.fn)}`));
  }
  return item;
}

function showOp(op) {
  const submesh = doc.submeshes[op.fn.submesh];
  const attributes = Object.entries(op.attributes || {}).map(([name, value]) => `${name} = ${value}`).join('\n');
  const measured = op.measured === undefined ? '' :
      `${timeText(op.measured)} each, ${timeText(op.measured * op.fn.calls)} per step`;
  showDetail(op.label || op.what,
      definitions([
        ['does', op.what],
        ['in', functionText(op.fn)],
        ['source', el('code', {}, sourceText(op.source) || 'unknown')],
        ['called', op.fn.calls > 0 ? `${plural(op.fn.calls, 'time')} per step` : 'before the first step'],
        ['predicted', `${timeText(op.seconds)} each, ${timeText(op.seconds * op.fn.calls)} per step`],
        ['measured', measured],
        ['arithmetic', op.flops > 0 ? `${countText(op.flops)} operations` : ''],
        ['touches', bytesText(op.bytes)],
        ['moves', moves(op) ? `${bytesText(op.moved)} ${op.peer ? 'per message' : 'received per rank'}` : ''],
        ['why', op.why],
        ['groups', op.groups],
        ['other end', op.peer ? el('button', {class: 'link', onclick: () => reveal(op.peer)}, functionText(op.peer.fn)) : ''],
        ['split', op.splits],
        ['attributes', attributes ? el('span', {style: 'white-space: pre-line'}, attributes) : ''],
      ]),
      el('h3', {}, `Reads (${op.in.length})`),
      el('ul', {}, ...op.in.map((buffer, i) => bufferItem(submesh, buffer, [op.makers[i]], 'made by'))),
      el('h3', {}, `Makes (${op.out.length})`),
      el('ul', {}, ...op.out.map((buffer) => {
        const storage = submesh.buffers[buffer][4];
        const readers = op.readers.filter((other) => other.fn.submesh === op.fn.submesh &&
            other.in.some((read, i) => submesh.buffers[read][4] === storage && other.makers[i] === op));
        return bufferItem(submesh, buffer, [...new Set(readers)].slice(0, 12), 'read by');
      })));
}

// ---- head and summary

function schedulePart() {
  const program = doc.program;
  if (!program.schedule) {
    return program.micro_batches > 1 ? 'one stage, micro-batches in turn' : 'one stage';
  }
  return program.virtual > 1 ? `${program.schedule}, ${program.virtual} stages per rank` : program.schedule;
}

function writeHead() {
  const program = doc.program;
  document.title = `${program.name} \u2013 weft view`;
  byId('title').append(program.name, el('small', {}, `  ${program.program} program`));
  const facts = [
    ['mesh', program.mesh],
    ['ranks', program.ranks],
    ['stages', `${program.stages}${manySubmeshes ? ` on ${program.submeshes} submeshes` : ''}`],
    ['schedule', schedulePart()],
    ['micro-batches', program.micro_batches],
    ['ZeRO', program.zero],
    ['recomputed', program.recomputed > 0 ? plural(program.recomputed, 'operator') : 'nothing'],
    ['gathered in each call', program.gathered_each_call > 0 ? plural(program.gathered_each_call, 'value') : ''],
  ];
  for (const [name, value] of facts) {
    if (value !== '') {
      byId('facts').append(el('span', {}, `${name} `, el('b', {}, `${value}`)));
    }
  }
}

function figure(value, text) {
  return el('div', {class: 'card figure'}, el('b', {}, value), el('span', {}, text));
}

function measuredFigures() {
  if (!doc.executed) {
    return [];
  }
  const {mean, simulated, step_seconds: steps} = doc.executed;
  return [
    figure(timeText(mean), `measured step, mean of ${steps.length - 1}: ${times(mean / doc.predicted.step)} the prediction`),
    figure(timeText(simulated), 'simulated with the measured times of operators'),
  ];
}

function writeSummary() {
  const predicted = doc.predicted;
  const moved = sum(Object.values(predicted.collectives), (entry) => entry.bytes);
  const calls = sum(Object.values(predicted.collectives), (entry) => entry.calls);
  const kinds = Object.entries(predicted.collectives).map(([kind, entry]) => `${entry.calls} ${kind}`).join(', ');
  const highest = Math.max(...doc.submeshes.map((submesh) => submesh.peak_bytes));
  const cards = el('div', {class: 'figures'},
      figure(timeText(predicted.step), `predicted step on ${doc.machine.name}`),
      ...measuredFigures(),
      figure(percent(predicted.bubble), 'bubble: time ranks are idle, update included'),
      figure(bytesText(highest), 'planned memory of the rank with the highest peak'),
      figure(countText(predicted.flops), 'arithmetic operations of a step, one rank of each stage'),
      figure(calls ? bytesText(moved) : 'none', calls ? `moved in a step: ${kinds}` : 'moved between ranks'));
  byId('summary').append(cards, el('div', {class: 'card'}, submeshTable()));
  if (manySubmeshes) {
    byId('summary').append(el('div', {class: 'card'}, stageMap()));
  }
  if (doc.program.conflicts.length > 0) {
    byId('summary').append(el('div', {class: 'card'}, el('h3', {}, 'Where requests conflicted'),
        el('ul', {}, ...doc.program.conflicts.map((text) => el('li', {}, text)))));
  }
}

// Planned bytes by class of the curve.
function regionBytes(submesh) {
  const bytes = Object.fromEntries(kClasses.map(([key]) => [key, 0]));
  for (const region of submesh.regions) {
    bytes[region.memory in bytes ? region.memory : 'other'] += region.bytes * region.slots;
  }
  return bytes;
}

function submeshTable() {
  const rows = doc.submeshes.map((submesh, b) => {
    const bytes = regionBytes(submesh);
    const bar = el('div', {class: 'stack', 'aria-hidden': 'true'}, ...kClasses.map(([key]) =>
        el('i', {style: `background:var(--${key});width:${100 * bytes[key] / Math.max(1, submesh.peak_bytes)}%`})));
    const largest = kClasses.filter(([key]) => bytes[key] > 0).sort((x, y) => bytes[y[0]] - bytes[x[0]]).slice(0, 3);
    return el('tr', {},
        el('td', {class: 'name'}, manySubmeshes ? `submesh ${b}` : 'all'), el('td', {class: 'name'}, rankRange(submesh.first_rank, submesh.ranks)),
        el('td', {}, submesh.stages.join(', ')), el('td', {class: 'n'}, timeText(submesh.busy)),
        el('td', {class: 'n'}, doc.predicted.step > 0 ? percent(1 - submesh.busy / doc.predicted.step) : ''),
        el('td', {class: 'n'}, bytesText(submesh.peak_bytes)), el('td', {}, bar),
        el('td', {class: 'soft most'}, largest.map(([key, name]) => `${name} ${bytesText(bytes[key])}`).join(', ')));
  });
  const heads = [['submesh', ''], ['ranks', ''], ['stages', ''], ['busy', 'n'], ['idle', 'n'],
    ['planned memory per rank', 'n'], ['', ''], ['most of it', '']];
  return el('div', {class: 'scroll'}, el('table', {},
      el('thead', {}, el('tr', {}, ...heads.map(([name, kind]) => el('th', {class: kind}, name)))),
      el('tbody', {}, ...rows)));
}

function stageCard(stage) {
  const functions = doc.submeshes.flatMap((submesh) => submesh.functions.filter((fn) => fn.stage === stage && isPerMicroBatch(fn.kind)));
  const submesh = doc.submeshes[functions[0].submesh];
  const folds = [...new Set(functions.flatMap((fn) => fn.ops.map((op) => op.fold)).filter(Boolean))];
  const layers = folds.length > 2 ? `${folds[0]} \u2026 ${folds[folds.length - 1]}` : folds.join(', ');
  return el('div', {class: 'stage-card'},
      el('h3', {}, el('a', {href: `#stage-${stage}`}, `Stage ${stage}`)),
      el('p', {}, `submesh ${functions[0].submesh}, ${rankRange(submesh.first_rank, submesh.ranks)}`),
      layers && folds.length < 200 ? el('p', {}, layers) : '',
      el('p', {}, functions.map((fn) => `${kKinds[fn.kind].letter} ${timeText(fn.seconds)}`).join(', ')));
}

// Messages from one stage to another, by the kind of function that sends: "24 KiB per micro-batch".
function messages(from, to, arrow) {
  const lines = [];
  for (const op of allOps) {
    if (op.what === 'send' && op.peer && op.fn.stage === from && op.peer.fn.stage === to) {
      lines.push(`${arrow} ${bytesText(op.moved)}${isPerMicroBatch(op.fn.kind) ? '' : ' once'}`);
    }
  }
  const most = 3;
  const more = lines.length > most ? [`${lines.length - most} more`] : [];
  return [...lines.slice(0, most), ...more].map((text) => el('b', {}, text));
}

function stageMap() {
  const stages = [...new Set(doc.submeshes.flatMap((submesh) => submesh.stages))].sort((x, y) => x - y);
  const map = el('div', {class: 'stages'});
  stages.forEach((stage, i) => {
    if (i > 0) {
      map.append(el('div', {class: 'between'}, ...messages(stages[i - 1], stage, '\u2192'), ...messages(stage, stages[i - 1], '\u2190')));
    }
    map.append(stageCard(stage));
  });
  return map;
}

function start() {
  linkOps();
  writeHead();
  writeSummary();
  writeGraph();
  writeTimeline();
  writeMemory();
  writeFrontier();
  writeTimes();
  writeTensors();
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      hideTip();
      if (!byId('detail').hidden) {
        closeDetail();
      }
    }
  });
}
