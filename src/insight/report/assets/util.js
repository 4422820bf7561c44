'use strict';
/* Everything the panels share. Text from the report reaches the page through text nodes only, never as markup. */
const hone = { panels: [], redraws: [] };

/* A text in the language of the report; words.js has them all. {0}, {1}... are the values. */
hone.say = (text, ...values) => {
  const words = hone.language === 'zh' && hone.words[text] !== undefined ? hone.words[text] : text;
  return words.replace(/\{(\d)\}/g, (all, i) => values[i]);
};

/* Element with attributes and children; a child that is no node becomes text. */
hone.el = (tag, attributes, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === 'style') Object.assign(node.style, value);
    else if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  hone.append(node, children);
  return node;
};

hone.append = (node, children) => {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
};

hone.svg = (tag, attributes, ...children) => {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  hone.append(node, children);
  return node;
};

hone.number = (value, digits) => {
  if (value === null || value === undefined || !isFinite(value)) return '\u2013';
  if (digits === undefined) {
    const size = Math.abs(value);
    digits = Number.isInteger(value) ? 0 : size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.1 ? 3 : size === 0 ? 0 : 4;
  }
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
};

hone.scaled = (value, step, units) => {
  let i = 0;
  while (Math.abs(value) >= step && i + 1 < units.length) { value /= step; i++; }
  return [hone.number(value, value === 0 || i === 0 ? 0 : Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2), units[i]];
};

hone.ms = (ms) => (ms === null || ms === undefined ? '\u2013' : ms < 1 ? hone.number(ms * 1000, ms < 0.01 ? 2 : ms < 0.1 ? 1 : 0) + ' \u00b5s' : hone.number(ms) + ' ms');
hone.bytes = (bytes) => hone.scaled(bytes, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']).join(' ');
hone.count = (value) => hone.scaled(value, 1000, ['', 'k', 'M', 'G', 'T', 'P']).join(' ').trim();
hone.percent = (value, digits) => hone.number(value, digits === undefined ? (Math.abs(value) >= 10 ? 0 : 1) : digits) + ' %';
hone.tiny = (value) => (value === 0 ? '0' : value.toExponential(1).replace('-', '\u2212').replace('+', ''));
hone.signed = (value) => (value >= 0 ? '+' : '\u2212') + hone.percent(Math.abs(value), 1);

/* What a step does: its type with everything that was fused into it, however the plan words it. */
hone.what = (l) => (!l.epilogue ? l.type : l.epilogue.toLowerCase().startsWith(l.type.toLowerCase()) ? l.epilogue : l.type + ' + ' + l.epilogue);

hone.css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/* Colours by operator type: the slowest types of the report get their own, the rest share one. */
hone.assignColors = (report) => {
  const time = new Map();
  for (const profile of [report.baseline, report.optimized])
    for (const type of profile ? profile.types : []) time.set(type.type, (time.get(type.type) || 0) + type.time_ms);
  const ranked = [...time.keys()].sort((a, b) => time.get(b) - time.get(a));
  hone.colorOf = new Map(ranked.slice(0, 7).map((type, i) => [type, '--c' + i]));
};
hone.colorName = (type) => hone.colorOf.get(type) || '--c7';
hone.color = (type) => 'var(' + hone.colorName(type) + ')';

/* One tooltip for the page; lines are text, the first one bold. */
hone.tip = {
  show(event, lines) {
    if (!this.node) this.node = document.body.appendChild(hone.el('div', { class: 'tip', role: 'tooltip' }));
    this.node.replaceChildren(hone.el('b', {}, lines[0]), ...lines.slice(1).map((line) => hone.el('div', {}, line)));
    this.node.hidden = false;
    const box = this.node.getBoundingClientRect();
    this.node.style.left = Math.max(8, Math.min(event.clientX + 14, innerWidth - box.width - 12)) + 'px';
    const below = event.clientY + 16;
    this.node.style.top = (below + box.height > innerHeight - 8 ? event.clientY - box.height - 12 : below) + 'px';
  },
  hide() { if (this.node) this.node.hidden = true; },
};
hone.hover = (node, lines) => {
  node.addEventListener('pointermove', (event) => hone.tip.show(event, lines()));
  node.addEventListener('pointerleave', () => hone.tip.hide());
  return node;
};

/* A panel: id, title, sub (text or function), render(body, report, tools). Not shown when `when` says no. Neighbours with
   `half` share a row. */
hone.panel = (panel) => hone.panels.push(panel);

/* Buttons of which one is pressed. */
hone.choice = (tools, options, chosen, onchange) => {
  const buttons = options.map(([value, label]) => hone.el('button', {
    class: 'seg', type: 'button', 'aria-pressed': String(value === chosen),
    onclick: () => {
      buttons.forEach((button, i) => button.setAttribute('aria-pressed', String(options[i][0] === value)));
      onchange(value);
    },
  }, label));
  tools.append(...buttons);
};

/* Draws now, on every change of width, and when the theme changes. */
hone.drawn = (node, draw) => {
  let width = 0;
  const redraw = () => { if (width > 0) draw(width); };
  new ResizeObserver(() => {
    const now = Math.round(node.clientWidth);
    if (now !== width) { width = now; redraw(); }
  }).observe(node);
  width = Math.round(node.clientWidth);
  redraw();
  hone.redraws.push(redraw);
};
