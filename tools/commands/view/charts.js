// The timeline of a step, predicted and executed, and the memory over it.

const kRowHeight = 26;
const kRowGap = 4;
const kAxisHeight = 20;

const kNamesWidth = 150;
const kTooShort = 1e-6;  // seconds: predictions below it leave out what a call itself costs

// Round steps, about `count` of them up to `end`.
function ticks(end, count) {
  if (!(end > 0)) {
    return [0];
  }
  const raw = end / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= raw);
  const marks = [];
  for (let i = 0; i * step <= end * 1.0001; ++i) {
    marks.push(i * step);
  }
  return marks;
}

// Round in units of 1024.
function byteTicks(end, count) {
  let unit = 1;
  while (end >= 1024 * unit) {
    unit *= 1024;
  }
  return ticks(end / unit, count).map((mark) => mark * unit);
}

function timeAxis(svg, end, x, top, bottom, width) {
  for (const mark of ticks(end, Math.max(2, Math.floor(width / 90)))) {
    const right = x(mark) + 50 > svg.getAttribute('width');
    svg.append(svgEl('line', {class: 'grid', x1: x(mark), x2: x(mark), y1: top, y2: bottom}),
        svgEl('text', {class: 'soft', x: x(mark) + (right ? -3 : 3), y: bottom - 6, 'text-anchor': right ? 'end' : 'start'}, timeText(mark)));
  }
}

// ---- timeline

function callName(fn, microBatch) {
  if (!isPerMicroBatch(fn.kind)) {
    return fn.kind;
  }
  const many = doc.submeshes[fn.submesh].stages.length > 1;
  return `${many ? fn.stage : ''}${kKinds[fn.kind].letter}${microBatch}`;
}

// Lanes of bars: {name, bars: [{fn, microBatch, start, end, lead, text}]}.
function simulatedLanes(callsOf, word) {
  return doc.submeshes.map((submesh, b) => ({
    name: `${manySubmeshes ? `submesh ${b}, ` : ''}${rankRange(submesh.first_rank, submesh.ranks)}`,
    bars: callsOf(submesh).map(([f, microBatch, start, end, lead]) => {
      const fn = submesh.functions[f];
      return {fn, microBatch, start, end, lead, text: barText(fn, microBatch, start, end, word, lead)};
    }),
  }));
}

function executedLanes() {
  return doc.executed.ranks.map((calls, rank) => {
    const submesh = doc.submeshes.find((each) => rank >= each.first_rank && rank < each.first_rank + each.ranks);
    return {
      name: `rank ${rank}`,
      bars: calls.map(([f, microBatch, start, end, lead, waiting, moving]) => {
        const fn = submesh.functions[f];
        const moved = moving > 0 ? `\nin collectives, with the wait for other ranks: ${timeText(moving)}` : '';
        const text = barText(fn, microBatch, start, end, 'measured', waiting) + `\npredicted ${timeText(fn.seconds)}${moved}`;
        return {fn, microBatch, start, end, lead, text};
      }),
    };
  });
}

function barText(fn, microBatch, start, end, word, waiting) {
  const what = isPerMicroBatch(fn.kind) ? `${callName(fn, microBatch)}: ${kKinds[fn.kind].name} of stage ${fn.stage}, micro-batch ${microBatch}` :
      `${fn.kind}, once per step`;
  return `${what}\n${timeText(start)} to ${timeText(end)}, ${word} ${timeText(end - start)}` +
      (waiting > 0 ? `\nreceiving, with the wait for the sender: ${timeText(waiting)}` : '');
}

function barNode(bar, x, y) {
  const from = x(bar.start);
  const width = Math.max(1, x(bar.end) - from);
  const parts = [svgEl('rect', {
    class: `bar fill-${kindClass(bar.fn.kind)}`, x: from, y, width, height: kRowHeight, rx: Math.min(3, width / 3),
    tabindex: -1, role: 'img', 'aria-label': bar.text,
  })];
  parts[0].bar = bar;
  if (bar.lead > 0) {
    parts.push(svgEl('rect', {class: 'fill-wait', x: from + 1, y: y + 1, height: kRowHeight - 2, rx: 2,
      width: Math.max(0, x(bar.start + bar.lead) - from - 2)}));
  }
  const name = callName(bar.fn, bar.microBatch);
  const room = x(bar.end) - x(bar.start + bar.lead);
  if (room > 7 * name.length + 6) {
    parts.push(svgEl('text', {class: 'bar-text', x: x(bar.end) - room / 2, y: y + kRowHeight / 2 + 4, 'text-anchor': 'middle'}, name));
  }
  return parts;
}

function laneChart(lanes, end, width, title) {
  const height = lanes.length * (kRowHeight + kRowGap) + kAxisHeight;
  const svg = svgEl('svg', {width, height, role: 'group', 'aria-label': title});
  const x = (seconds) => (end > 0 ? seconds / end : 0) * (width - 60);
  timeAxis(svg, end, x, 0, height, width - 60);
  lanes.forEach((lane, row) => {
    const y = row * (kRowHeight + kRowGap);
    lane.bars.forEach((bar) => svg.append(...barNode(bar, x, y)));
  });
  const bars = [...svg.querySelectorAll('.bar')];
  if (bars.length > 0) {
    bars[0].setAttribute('tabindex', 0);
  }
  const lengths = lanes.map((lane) => lane.bars.length);
  svg.addEventListener('keydown', (event) => moveInLanes(event, bars, lengths));
  return svg;
}

// Left and right go along a rank, up and down to the bar of the next rank that begins nearest.
function moveInLanes(event, bars, lengths) {
  const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
  const at = bars.indexOf(document.activeElement);
  if (!step || at < 0) {
    return;
  }
  event.preventDefault();
  let next = bars[at + step[1]];
  if (step[0] !== 0) {
    let row = 0;
    let first = 0;
    while (at >= first + lengths[row]) {
      first += lengths[row++];
    }
    const from = step[0] > 0 ? first + lengths[row] : first - (lengths[row - 1] || 0);
    const candidates = bars.slice(from, from + (lengths[row + step[0]] || 0));
    const distance = (bar) => Math.abs(bar.bar.start - bars[at].bar.start);
    next = candidates.sort((a, b) => distance(a) - distance(b))[0];
  }
  if (next) {
    bars.forEach((bar) => bar.setAttribute('tabindex', -1));
    next.setAttribute('tabindex', 0);
    next.focus();
    next.scrollIntoView({block: 'nearest', inline: 'nearest'});
  }
}

function tipOfBars(root) {
  const show = (event) => {
    const bar = event.target.bar;
    if (bar) {
      const box = event.target.getBoundingClientRect();
      const mouse = event.type === 'mousemove';
      showTip(bar.text, mouse ? event.clientX : Math.max(0, box.left), mouse ? event.clientY : box.bottom - 12);
    } else {
      hideTip();
    }
  };
  root.addEventListener('mousemove', show);
  root.addEventListener('focusin', show);
  root.addEventListener('mouseleave', hideTip);
  root.addEventListener('focusout', hideTip);
  root.addEventListener('click', (event) => event.target.bar && showFunction(event.target.bar));
}

function showFunction(bar) {
  const {fn} = bar;
  const slow = [...fn.ops].sort((a, b) => (b.measured ?? b.seconds) - (a.measured ?? a.seconds)).slice(0, 15);
  showDetail(callName(fn, bar.microBatch),
      definitions([
        ['function', functionText(fn)],
        ['micro-batch', isPerMicroBatch(fn.kind) ? `${bar.microBatch}` : ''],
        ['from', timeText(bar.start)], ['to', timeText(bar.end)], ['takes', timeText(bar.end - bar.start)],
        ['predicted', timeText(fn.seconds)],
        ['measured', fn.measured === undefined ? '' : `${timeText(fn.measured)} on average, without waits`],
      ]),
      el('h3', {}, 'Its longest operators'),
      el('ul', {}, ...slow.map((op) => el('li', {},
          el('button', {class: 'link', onclick: () => reveal(op)}, op.label || op.what),
          ` ${timeText(op.measured ?? op.seconds)} `, el('span', {class: 'soft'}, shortSource(op.source))))));
}

function lanesWithNames(title, lanes, end, width) {
  const height = kRowHeight + kRowGap;
  return el('div', {class: 'card'}, el('h3', {}, title),
      el('div', {class: 'rows', style: 'margin-top:8px'},
          el('div', {class: 'names', style: `width:${kNamesWidth}px`}, ...lanes.map((lane) => el('div', {style: `height:${height}px`}, lane.name))),
          el('div', {class: 'scroll'}, laneChart(lanes, end, width, title))));
}

function drawTimeline() {
  const body = byId('timeline-body');
  const zoom = Number(byId('timeline-zoom').value);
  const own = doc.executed && byId('timeline-own').checked;
  const width = Math.max(300, byId('timeline').clientWidth - 46 - kNamesWidth) * zoom;
  const charts = [[`Predicted: ${timeText(doc.predicted.step)}, bubble ${percent(doc.predicted.bubble)}`,
    simulatedLanes((submesh) => submesh.calls, 'predicted')]];
  if (doc.executed) {
    const {shown, step_seconds: steps, simulated} = doc.executed;
    charts.push([`Executed: step ${shown}, ${timeText(steps[shown])}, ${times(steps[shown] / doc.predicted.step)} the prediction`, executedLanes()]);
    charts.push([`Simulated with the measured times of operators: ${timeText(simulated)}`,
      simulatedLanes((submesh) => submesh.measured_calls, 'simulated')]);
  }
  const endOf = (lanes) => Math.max(0, ...lanes.flatMap((lane) => lane.bars.map((bar) => bar.end)));
  const longest = Math.max(...charts.map(([, lanes]) => endOf(lanes)));
  const cards = charts.map(([title, lanes]) => lanesWithNames(title, lanes, own ? endOf(lanes) : longest, width));
  body.replaceChildren(...cards);
  cards.forEach(tipOfBars);
}

// Per function: seconds of a call, predicted and measured.
function differences() {
  const rows = doc.submeshes.flatMap((submesh) => submesh.functions.filter((fn) => fn.calls > 0 && fn.ops.length > 0)).map((fn) =>
    el('tr', {}, el('td', {}, functionText(fn)), el('td', {class: 'n'}, `${fn.calls}`),
        el('td', {class: 'n'}, timeText(fn.seconds)), el('td', {class: 'n'}, timeText(fn.measured)),
        el('td', {class: 'n'}, timeText(fn.measured - fn.seconds)), el('td', {class: 'n'}, fn.seconds < kTooShort ? '' : times(fn.measured / fn.seconds))));
  const heads = [['function', ''], ['calls', 'n'], ['predicted per call', 'n'], ['measured per call', 'n'],
    ['difference', 'n'], ['measured / predicted', 'n']];
  return el('div', {class: 'scroll'}, el('table', {id: 'differences'},
      el('thead', {}, el('tr', {}, ...heads.map(([name, kind]) => el('th', {class: kind}, name)))), el('tbody', {}, ...rows)));
}

// Per rank: what the shown step was spent on.
function spent() {
  const step = doc.executed.step_seconds[doc.executed.shown];
  const rows = doc.executed.ranks.map((calls, rank) => {
    const inCalls = sum(calls, (call) => call[3] - call[2]);
    const waiting = sum(calls, (call) => call[5]);
    const moving = sum(calls, (call) => call[6]);
    const cells = [inCalls - waiting - moving, moving, waiting, Math.max(0, step - inCalls)];
    return el('tr', {}, el('td', {}, `rank ${rank}`),
        ...cells.map((seconds) => el('td', {class: 'n'}, `${timeText(seconds)} (${percent(seconds / step)})`)));
  });
  const heads = ['', 'kernels and sends', 'collectives, with the wait for others', 'receiving, with the wait for the sender', 'between calls'];
  return el('div', {class: 'scroll'}, el('table', {id: 'spent'},
      el('thead', {}, el('tr', {}, ...heads.map((name, i) => el('th', {class: i ? 'n' : ''}, name)))), el('tbody', {}, ...rows)));
}

function timelineLegend() {
  const kinds = new Set(doc.submeshes.flatMap((submesh) => submesh.calls.map(([f]) => submesh.functions[f].kind)));
  const items = Object.keys(kKinds).filter((kind) => kinds.has(kind)).map((kind) =>
      el('span', {}, el('i', {class: `dot-${kind}`}), `${kKinds[kind].letter} ${kKinds[kind].name}`));
  if ([...kinds].some((kind) => !isPerMicroBatch(kind))) {
    items.push(el('span', {}, el('i', {class: 'dot-once'}), 'once per step'));
  }
  if (manySubmeshes) {
    items.push(el('span', {}, el('i', {class: 'dot-wait'}), 'waits for a message'));
  }
  return el('div', {class: 'legend'}, ...items);
}

function writeTimeline() {
  const about = 'One row for each pipeline rank; a bar is a call of a function for one micro-batch. Predicted times come from arithmetic, ' +
      `bytes and collectives at the figures of machine ${doc.machine.name}, played instruction by instruction. ` +
      'Arrow keys go from bar to bar.';
  const own = doc.executed ? el('label', {}, el('input', {type: 'checkbox', id: 'timeline-own', onchange: drawTimeline}),
      'each on a scale of its own') : '';
  byId('timeline').append(el('p', {class: 'about'}, about),
      el('div', {class: 'controls'}, timelineLegend(),
          el('label', {}, 'zoom', el('input', {type: 'range', id: 'timeline-zoom', min: 1, max: 20, step: 0.5, value: 1, oninput: drawTimeline})), own),
      el('div', {id: 'timeline-body'}));
  if (doc.executed) {
    byId('timeline').append(
        el('div', {class: 'card'}, el('h3', {}, 'Measured against predicted, one call of each function'), differences(),
            el('p', {class: 'soft'}, 'Means over ranks, micro-batches and all steps but the first; ' +
                'without waits for messages and for other ranks. ' +
                `With these times the simulated step is ${timeText(doc.executed.simulated)}, the executed one ${timeText(doc.executed.mean)}.`)),
        el('div', {class: 'card'}, el('h3', {}, `What step ${doc.executed.shown} was spent on`), spent()));
  }
  redrawOnResize('timeline', drawTimeline);
}

// Draws now, and again whenever the section has another width.
function redrawOnResize(section, draw) {
  let width = -1;
  const check = () => {
    if (byId(section).clientWidth !== width) {
      width = byId(section).clientWidth;
      draw();
    }
  };
  check();
  new ResizeObserver(check).observe(byId(section));
}

// ---- memory

// Bytes of each class at a point of the curve, from the bottom up.
function layersOf(submesh) {
  const bytes = regionBytes(submesh);
  return submesh.memory.curve.map(([, activations, transients]) =>
      kClasses.map(([key]) => (key === 'activation' ? activations : key === 'transient' ? transients : bytes[key])));
}

function areaPath(points, end, x, y, lower, upper) {
  const steps = (values, forward) => {
    const parts = [];
    points.forEach(([from], i) => {
      const to = i + 1 < points.length ? points[i + 1][0] : end;
      parts.push(`${x(from).toFixed(1)},${y(values[i]).toFixed(1)}`, `${x(to).toFixed(1)},${y(values[i]).toFixed(1)}`);
    });
    return (forward ? parts : parts.reverse()).join(' L');
  };
  return `M${steps(upper, true)} L${steps(lower, false)} Z`;
}

function peakIndex(submesh) {
  let best = 0;
  submesh.memory.curve.forEach((point, i, curve) => {
    best = point[1] + point[2] > curve[best][1] + curve[best][2] ? i : best;
  });
  return best;
}

function memoryChart(b, width) {
  const submesh = doc.submeshes[b];
  const curve = submesh.memory.curve;
  const height = 220;
  const left = 62;
  const end = doc.predicted.step;
  const x = (seconds) => left + (end > 0 ? seconds / end : 0) * (width - left - 12);
  const most = Math.max(submesh.peak_bytes, submesh.memory.peak_bytes, 1);
  const y = (bytes) => height - kAxisHeight - bytes / most * (height - kAxisHeight - 22);
  const svg = svgEl('svg', {width, height, tabindex: 0, role: 'img', 'aria-label':
      `Memory of ${rankRange(submesh.first_rank, submesh.ranks)} over the step: at most ${bytesText(submesh.memory.peak_bytes)} in use, ${bytesText(submesh.peak_bytes)} planned`});
  timeAxis(svg, end, x, 18, height, width - left);
  for (const mark of byteTicks(most, 4)) {
    svg.append(svgEl('line', {class: 'grid', x1: left, x2: width - 12, y1: y(mark), y2: y(mark)}));
    svg.append(svgEl('text', {class: 'soft', x: left - 6, y: y(mark) + 4, 'text-anchor': 'end'}, bytesText(mark)));
  }
  const layers = layersOf(submesh);
  let lower = layers.map(() => 0);
  kClasses.forEach(([key], k) => {
    const upper = layers.map((values, i) => lower[i] + values[k]);
    if (curve.length > 0 && layers.some((values) => values[k] > 0)) {
      svg.append(svgEl('path', {class: 'layer', d: areaPath(curve, end, x, y, lower, upper), fill: `var(--${key})`}));
    }
    lower = upper;
  });
  svg.append(svgEl('line', {class: 'cap', x1: left, x2: width - 12, y1: y(submesh.peak_bytes), y2: y(submesh.peak_bytes)}),
      svgEl('text', {x: left + 4, y: y(submesh.peak_bytes) - 5}, `planned ${bytesText(submesh.peak_bytes)}`));
  if (curve.length > 0) {
    addPeakMark(svg, submesh, x, y, width);
    addCross(svg, submesh, layers, x, height);
  }
  return svg;
}

function addPeakMark(svg, submesh, x, y, width) {
  const at = x(submesh.memory.curve[peakIndex(submesh)][0]);
  const top = y(submesh.memory.peak_bytes);
  svg.append(svgEl('line', {class: 'peak-line', x1: at, x2: at, y1: top, y2: y(0)}),
      svgEl('circle', {class: 'peak-dot', cx: at, cy: top, r: 4.5}),
      svgEl('text', {x: width - 12, y: y(submesh.peak_bytes) - 5, 'text-anchor': 'end'},
          `\u25cf most in use ${bytesText(submesh.memory.peak_bytes)}`));
}

// A line under the pointer (or moved with the arrow keys) that tells what is alive.
function addCross(svg, submesh, layers, x, height) {
  const curve = submesh.memory.curve;
  const cross = svgEl('line', {class: 'cross', y1: 18, y2: height - kAxisHeight, visibility: 'hidden'});
  svg.append(cross);
  let at = peakIndex(submesh);
  const show = (i, left, top) => {
    at = Math.max(0, Math.min(curve.length - 1, i));
    cross.setAttribute('x1', x(curve[at][0]));
    cross.setAttribute('x2', x(curve[at][0]));
    cross.setAttribute('visibility', 'visible');
    const lines = kClasses.map(([, name], k) => [name, layers[at][k]]).filter(([, bytes]) => bytes > 0).reverse();
    showTip([`${timeText(curve[at][0])}: ${bytesText(sum(lines, (line) => line[1]))}`,
      ...lines.map(([name, bytes]) => `${name} ${bytesText(bytes)}`)].join('\n'), left, top);
  };
  const hide = () => {
    cross.setAttribute('visibility', 'hidden');
    hideTip();
  };
  svg.addEventListener('mousemove', (event) => {
    const pixel = event.clientX - svg.getBoundingClientRect().left;
    let i = 0;
    while (i + 1 < curve.length && x(curve[i + 1][0]) <= pixel) {
      ++i;
    }
    show(i, event.clientX, event.clientY);
  });
  svg.addEventListener('mouseleave', hide);
  svg.addEventListener('blur', hide);
  svg.addEventListener('keydown', (event) => {
    const step = {ArrowLeft: -1, ArrowRight: 1, Home: -curve.length, End: curve.length}[event.key];
    if (step) {
      event.preventDefault();
      const box = svg.getBoundingClientRect();
      show(at + step, box.left + x(curve[Math.max(0, Math.min(curve.length - 1, at + step))][0]), box.top + 60);
    }
  });
}

function peakTensors(b) {
  const memory = doc.submeshes[b].memory;
  const columns = [
    {name: 'bytes', n: true, of: (tensor) => tensor.bytes, text: bytesText},
    {name: 'tensor', of: (tensor) => tensor.name, wide: true},
    {name: 'shape', of: (tensor) => tensor.shape, mono: true},
    {name: 'memory', of: (tensor) => (tensor.micro_batches > 1 ? `${tensor.memory} \u00d7 ${tensor.micro_batches}` : tensor.memory),
      title: (tensor) => (tensor.micro_batches > 1 ? `of ${tensor.micro_batches} micro-batches, together` : undefined), keep: true},
    {name: 'source', of: (tensor) => shortSource(tensor.source), title: (tensor) => sourceText(tensor.source), mono: true},
  ];
  return sortableTable({columns, rows: memory.tensors, sorted: 0, limit: 12, label: 'Largest tensors at the peak'});
}

function memoryNote(b) {
  const submesh = doc.submeshes[b];
  const memory = submesh.memory;
  const where = memory.function ? `in ${memory.function} of micro-batch ${memory.micro_batch} at ${memory.operator}` +
      `${memory.source >= 0 ? ` (${shortSource(memory.source)})` : ''}` : '';
  const rings = submesh.regions.filter((region) => region.memory === 'activation' && region.from).map((region) =>
      `stage ${region.stage}, ${region.from} to ${region.to}: ${plural(region.slots, 'slot')} of ${bytesText(region.bytes)}`);
  return el('p', {class: 'soft'}, `Most is in use ${where}: ${plural(memory.alive, 'tensor')}, ${bytesText(memory.peak_bytes)}. ` +
      (rings.length > 0 ? `Activations \u2013 ${rings.join('; ')}.` : ''));
}

function drawMemory() {
  const grid = byId('memory-grid');
  for (const [b, holder] of [...grid.querySelectorAll('.chart')].entries()) {
    holder.replaceChildren(memoryChart(b, Math.max(280, holder.clientWidth)));
  }
}

function writeMemory() {
  const used = new Set(doc.submeshes.flatMap((submesh) => Object.entries(regionBytes(submesh)).filter(([, bytes]) => bytes > 0).map(([key]) => key)));
  byId('memory').append(
      el('p', {class: 'about'}, 'Bytes in use on each rank of a submesh, over the predicted step. Parameters, state, sums, mailboxes and scratch memory ' +
          'are there all the time; activations live from forward to backward of their micro-batch, transients within one call. The dashed ' +
          'line is what the plan reserves, the point the peak. Arrow keys read a chart.'),
      el('div', {class: 'controls'}, el('div', {class: 'legend'}, ...[...kClasses].reverse().filter(([key]) => used.has(key)).map(([key, name]) =>
          el('span', {}, el('i', {style: `background:var(--${key})`}), name)))),
      el('div', {class: 'memory-grid', id: 'memory-grid'}, ...doc.submeshes.map((submesh, b) => el('div', {class: 'card'},
          el('h3', {}, `${manySubmeshes ? `Submesh ${b}, ` : ''}${rankRange(submesh.first_rank, submesh.ranks)}`),
          el('div', {class: 'chart'}), memoryNote(b),
          el('details', {class: 'list', open: doc.submeshes.length <= 4}, el('summary', {}, 'Largest tensors at the peak'), peakTensors(b))))));
  redrawOnResize('memory', drawMemory);
}

// ---- the frontier of time against memory

// A mark for each plan, and the steps between: with less memory than a plan has its peak at, the next one is taken.
function frontierChart(points, width) {
  const height = 200;
  const left = 62;
  const most = {bytes: Math.max(...points.map((point) => point.peak_bytes), 1), seconds: Math.max(...points.map((point) => point.step_seconds), 1e-12)};
  const x = (bytes) => left + bytes / most.bytes * (width - left - 24);
  const y = (seconds) => height - kAxisHeight - seconds / most.seconds * (height - kAxisHeight - 16);
  const svg = svgEl('svg', {width, height, role: 'img', 'aria-label': `Step time against memory of ${plural(points.length, 'plan')}`});
  for (const mark of byteTicks(most.bytes, 5)) {
    svg.append(svgEl('line', {class: 'grid', x1: x(mark), x2: x(mark), y1: 8, y2: height - kAxisHeight}),
        svgEl('text', {class: 'soft', x: x(mark), y: height - 4, 'text-anchor': mark > 0 ? 'middle' : 'start'}, bytesText(mark)));
  }
  for (const mark of ticks(most.seconds, 4)) {
    svg.append(svgEl('line', {class: 'grid', x1: left, x2: width - 12, y1: y(mark), y2: y(mark)}),
        svgEl('text', {class: 'soft', x: left - 6, y: y(mark) + 4, 'text-anchor': 'end'}, timeText(mark)));
  }
  const path = points.map((point, i) => (i === 0 ? `M${x(most.bytes)} ${y(point.step_seconds)}` : `V${y(point.step_seconds)}`) + `H${x(point.peak_bytes)}`);
  svg.append(svgEl('path', {class: 'cap', d: path.join(''), fill: 'none'}));
  for (const point of points) {
    const text = `${point.plan}: ${timeText(point.step_seconds)} in ${bytesText(point.peak_bytes)}`;
    svg.append(svgEl('circle', {cx: x(point.peak_bytes), cy: y(point.step_seconds), r: 4, fill: 'currentColor'}, svgEl('title', {}, text)));
  }
  return svg;
}

function writeFrontier() {
  const points = doc.frontier || [];
  if (points.length === 0) {
    return;
  }
  const chart = el('div', {id: 'frontier-chart'});
  const columns = [
    {name: 'memory of a rank', n: true, of: (point) => point.peak_bytes, text: bytesText},
    {name: 'step', n: true, of: (point) => point.step_seconds, text: timeText},
    {name: 'plan', of: (point) => point.plan, wide: true},
  ];
  byId('memory').append(el('h3', {}, 'Time against memory'),
      el('p', {class: 'about'}, 'The best plan for less and less memory of a rank, as the planner predicts it.'),
      el('div', {class: 'card'}, chart, sortableTable({columns, rows: points, sorted: 0, limit: kRowsAtFirst, label: 'Time against memory'})));
  redrawOnResize('frontier-chart', () => chart.replaceChildren(frontierChart(points, Math.max(280, chart.clientWidth))));
}
