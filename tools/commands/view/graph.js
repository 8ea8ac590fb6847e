// Operators, by stage and function; those of one layer folded, layers that are alike folded once more.

const kMinimalFold = 3;  // fewer operators of one name are not worth a fold
const kMinimalRun = 3;   // nor fewer layers alike
const rowsByKey = new Map();

function shapeOf(op) {
  const buffers = doc.submeshes[op.fn.submesh].buffers;
  const buffer = op.out.length > 0 ? op.out[0] : op.in[0];
  return buffer === undefined ? '' : buffers[buffer][2] + (op.out.length > 1 ? ` +${op.out.length - 1}` : '');
}

function opRow(op, longest) {
  const row = el('button', {
    class: moves(op) ? 'op moves' : 'op',
    'data-op': op.key,
    title: sourceText(op.source),
    onclick: () => selectOp(op),
    onmouseenter: () => markFlow(op),
    onfocus: () => markFlow(op),
  },
      el('span', {class: 'flow'}),
      el('span', {class: 'name'}, op.label || op.what),
      el('span', {class: 'what'}, op.what),
      el('span', {class: 'shape'}, shapeOf(op)),
      el('span', {class: 'time', style: `--part:${Math.round(100 * op.seconds / (longest || 1))}%`}, timeText(op.seconds)),
      el('span', {class: 'src'}, shortSource(op.source)));
  if (moves(op)) {
    row.append(el('span', {class: 'why'}, el('b', {}, bytesText(op.moved)), ` ${op.why}`, op.groups ? `, groups ${op.groups}` : ''));
  }
  rowsByKey.set(op.key, row);
  return el('li', {}, row);
}

let marked = [];

// Marks what an operator reads from and who reads from it, as far as they are unfolded.
function markFlow(op) {
  marked.forEach((row) => row.classList.remove('from', 'to'));
  marked = [];
  const mark = (others, name) => {
    for (const other of others) {
      const row = other && rowsByKey.get(other.key);
      if (row) {
        row.classList.add(name);
        marked.push(row);
      }
    }
  };
  mark(op.makers, 'from');
  mark(op.readers, 'to');
}

function selectOp(op) {
  document.querySelectorAll('.op[aria-current]').forEach((row) => row.removeAttribute('aria-current'));
  const row = rowsByKey.get(op.key);
  if (row) {
    row.setAttribute('aria-current', 'true');
  }
  markFlow(op);
  showOp(op);
}

// Unfolds what holds an operator, and goes there.
function reveal(op) {
  const search = byId('graph-search');
  if (search.value !== '' || byId('graph-moves').checked) {
    search.value = '';
    byId('graph-moves').checked = false;
    fillGraph();
  }
  for (let guard = 0; guard < 6 && !rowsByKey.has(op.key); ++guard) {
    for (const fold of document.querySelectorAll('#graph details')) {
      if (!fold.open && fold.holds && fold.holds(op)) {
        openFold(fold);
      }
    }
  }
  const row = rowsByKey.get(op.key);
  if (row) {
    for (let node = row.parentElement; node; node = node.parentElement) {
      if (node.tagName === 'DETAILS') {
        node.open = true;
      }
    }
    row.scrollIntoView({block: 'center'});
    row.focus({preventScroll: true});
  }
  selectOp(op);
}

// Operators next to each other with the same fold name.
function foldsOf(ops) {
  const folds = [];
  for (const op of ops) {
    const last = folds[folds.length - 1];
    if (last && last.name === (op.fold || '')) {
      last.ops.push(op);
    } else {
      folds.push({name: op.fold || '', ops: [op]});
    }
  }
  return folds;
}

const foldShape = (fold) => fold.ops.map((op) => `${op.what} ${shapeOf(op)} ${op.moved || 0}`).join(';');

// Folds next to each other that hold the same operators.
function runsOf(folds) {
  const runs = [];
  for (const fold of folds) {
    const last = runs[runs.length - 1];
    const shape = fold.name ? foldShape(fold) : null;
    if (last && shape !== null && last.shape === shape) {
      last.folds.push(fold);
    } else {
      runs.push({shape, folds: [fold]});
    }
  }
  return runs;
}

function movesBadge(ops) {
  const moving = ops.filter(moves);
  return moving.length === 0 ? '' :
      el('span', {class: 'badge'}, `${moving.length} ${moving.length === 1 ? moving[0].what : 'transfers'}, ${bytesText(sum(moving, (op) => op.moved))}`);
}

// A <details> whose body is made when it is first opened.
function lazyFold(attributes, summary, ops, fillBody) {
  const body = el('div', {class: 'body'});
  const fold = el('details', attributes, summary, body);
  const keys = new Set(ops.map((op) => op.key));
  fold.holds = (op) => keys.has(op.key);
  fold.make = () => {
    if (body.childElementCount === 0) {
      fillBody(body);
    }
  };
  fold.addEventListener('toggle', () => fold.open && fold.make());
  return fold;
}

function openFold(fold) {
  fold.make();
  fold.open = true;
}

function layerFold(fold, longest) {
  const summary = el('summary', {}, el('b', {}, fold.name), el('span', {class: 'soft'}, plural(fold.ops.length, 'operator')),
      el('span', {class: 'soft'}, timeText(sum(fold.ops, (op) => op.seconds))), movesBadge(fold.ops));
  return lazyFold({class: 'fold'}, summary, fold.ops, (body) =>
      body.append(el('ol', {class: 'ops'}, ...fold.ops.map((op) => opRow(op, longest)))));
}

function runFold(run, longest) {
  const ops = run.folds.flatMap((fold) => fold.ops);
  const first = run.folds[0];
  const last = run.folds[run.folds.length - 1];
  const summary = el('summary', {}, el('b', {}, `${first.name} \u2026 ${last.name}`),
      el('span', {class: 'soft'}, `${run.folds.length} alike, ${plural(first.ops.length, 'operator')} each`),
      el('span', {class: 'soft'}, timeText(sum(ops, (op) => op.seconds))), movesBadge(ops));
  return lazyFold({class: 'fold run'}, summary, ops, (body) =>
      body.append(...run.folds.map((fold) => layerFold(fold, longest))));
}

function functionBody(body, ops, folded) {
  const longest = Math.max(...ops.map((op) => op.seconds));
  if (!folded) {
    body.append(el('ol', {class: 'ops'}, ...ops.map((op) => opRow(op, longest))));
    return;
  }
  for (const run of runsOf(foldsOf(ops))) {
    if (run.folds.length >= kMinimalRun) {
      body.append(runFold(run, longest));
      continue;
    }
    for (const fold of run.folds) {
      if (fold.name && fold.ops.length >= kMinimalFold) {
        body.append(layerFold(fold, longest));
      } else {
        body.append(el('ol', {class: 'ops'}, ...fold.ops.map((op) => opRow(op, longest))));
      }
    }
  }
}

function functionPanel(fn, ops, folded) {
  const calls = fn.calls > 0 ? `${fn.calls} \u00d7 per step` : 'before the first step';
  const measured = fn.measured === undefined ? '' :
      el('span', {}, `measured ${timeText(fn.measured)}`);
  const summary = el('summary', {}, el('b', {}, fn.name), el('span', {}, plural(ops.length, 'operator')),
      el('span', {}, calls), el('span', {}, `predicted ${timeText(fn.seconds)}`), measured, movesBadge(ops));
  const panel = lazyFold({class: `card function ${kindClass(fn.kind)}`}, summary, ops,
      (body) => functionBody(body, ops, folded));
  if (fn.kind !== 'init' || !folded) {
    openFold(panel);
  }
  return panel;
}

function graphFilter() {
  const words = byId('graph-search').value.toLowerCase().split(/\s+/).filter(Boolean);
  const onlyMoves = byId('graph-moves').checked;
  const active = words.length > 0 || onlyMoves;
  const keeps = (op) => (!onlyMoves || moves(op)) && words.every((word) =>
      `${op.label} ${op.what} ${op.why || ''} ${sourceText(op.source)}`.toLowerCase().includes(word));
  return {active, keeps};
}

function fillGraph() {
  rowsByKey.clear();
  const {active, keeps} = graphFilter();
  const body = byId('graph-body');
  body.replaceChildren();
  let shown = 0;
  doc.submeshes.forEach((submesh, b) => {
    const stages = [...new Set(submesh.functions.map((fn) => fn.stage))].sort((x, y) => x - y);
    for (const stage of stages) {
      const panels = [];
      // What runs before the first step stands last.
      const functions = submesh.functions.filter((each) => each.stage === stage)
          .sort((x, y) => (x.kind === 'init') - (y.kind === 'init'));
      for (const fn of functions) {
        const ops = active ? fn.ops.filter(keeps) : fn.ops;
        shown += ops.length;
        if (ops.length > 0) {
          panels.push(functionPanel(fn, ops, !active));
        }
      }
      if (panels.length > 0) {
        const where = manySubmeshes ? `Stage ${stage}: submesh ${b}, ${rankRange(submesh.first_rank, submesh.ranks)}` :
            rankRange(submesh.first_rank, submesh.ranks).replace(/^r/, 'R');
        body.append(el('details', {class: 'stage', id: `stage-${stage}`, open: true}, el('summary', {}, where),
            el('div', {class: 'functions'}, ...panels)));
      }
    }
  });
  byId('graph-count').textContent = active ? `${shown} of ${plural(allOps.length, 'operator')}` : plural(allOps.length, 'operator');
}

// Up and down go from operator to operator.
function moveInGraph(event) {
  if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') {
    return;
  }
  const stops = [...document.querySelectorAll('#graph .op, #graph summary')].filter((node) => node.offsetParent !== null);
  const at = stops.indexOf(document.activeElement);
  const next = stops[at + (event.key === 'ArrowDown' ? 1 : -1)];
  if (at >= 0 && next) {
    event.preventDefault();
    next.focus();
  }
}

function writeGraph() {
  byId('graph').append(
      el('p', {class: 'about'}, 'What one rank runs, in order. Each operator with what it computes, the shape of its result on one rank, ' +
          'its predicted time, and your source line. What moves data between ranks is tinted, with bytes and reason. ' +
          'Pointing at an operator marks those it reads from (\u25b2) and those that read from it (\u25bc); a click shows all of it.'),
      el('div', {class: 'controls'},
          el('input', {type: 'search', id: 'graph-search', placeholder: 'Filter: name, kernel, source line',
            'aria-label': 'Filter operators', oninput: fillGraph}),
          el('label', {}, el('input', {type: 'checkbox', id: 'graph-moves', onchange: fillGraph}), 'only what moves data'),
          el('span', {class: 'soft', id: 'graph-count'})),
      el('div', {id: 'graph-body', onkeydown: moveInGraph}));
  fillGraph();
}
