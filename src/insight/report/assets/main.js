'use strict';
/* Reads the data, builds the page. A panel that fails says so and leaves the others alone. */
hone.theme = {
  name: (name) => hone.say({ auto: 'Theme: auto', light: 'Theme: light', dark: 'Theme: dark' }[name]),
  get() {
    const asked = /[#&]theme=(light|dark)/.exec(location.hash);
    if (asked) return asked[1];
    try { return localStorage.getItem('hone-theme') || 'auto'; } catch (error) { return 'auto'; }
  },
  set(name) {
    if (name === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    try { localStorage.setItem('hone-theme', name); } catch (error) { /* a file page may not store */ }
    hone.redraws.forEach((redraw) => redraw());
  },
  button() {
    let now = this.get();
    const button = hone.el('button', { class: 'theme', type: 'button', onclick: () => {
      now = { auto: 'light', light: 'dark', dark: 'auto' }[now];
      button.textContent = this.name(now);
      this.set(now);
    } }, this.name(now));
    this.set(now);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => hone.redraws.forEach((redraw) => redraw()));
    return button;
  },
};

hone.brand = () => {
  /* A blade on a stone. */
  const mark = hone.svg('svg', { width: 26, height: 26, viewBox: '0 0 26 26', 'aria-hidden': 'true' });
  const blade = hone.svg('path', { d: 'M3 16.5 20.5 3.5c1 4-1.2 8.6-5.5 11.4z' }), stone = hone.svg('rect', { x: 3, y: 19, width: 20, height: 3.6, rx: 1.8 });
  blade.style.fill = 'var(--accent)';
  stone.style.fill = 'var(--ink3)';
  mark.append(blade, stone);
  return hone.el('div', { class: 'brand' }, mark, 'hone');
};

hone.section = (panel, report) => {
  const { el } = hone;
  const tools = el('div', { class: 'tools' }), body = el('div', { class: 'body' });
  const sub = typeof panel.sub === 'function' ? panel.sub(report) : panel.sub && hone.say(panel.sub), title = hone.say(panel.title);
  const section = el('section', { class: 'panel', id: panel.id, 'aria-label': title },
    el('div', { class: 'head' }, el('h2', {}, title), el('div', { class: 'sub' }, sub || ''), tools), body);
  section.start = () => {
    try {
      panel.render(body, report, tools);
    } catch (error) {
      body.replaceChildren(el('p', { class: 'empty bad' }, hone.say('This panel could not be drawn: {0}', error.message)));
      console.error(panel.id + ': ' + error.message);
    }
  };
  return section;
};

hone.footer = (report) => {
  const { el } = hone;
  const now = report.optimized || report.baseline, s = now.sampling, rows = [];
  const add = (name, value) => { if (value !== null && value !== undefined && value !== '') rows.push(el('div', {}, el('dt', {}, name), el('dd', { class: 'num' }, value))); };
  add(hone.say('measured runs'), s.iterations + (s.interrupted ? hone.say(' (interrupted)') : '') + (s.warmups ? hone.say(' after {0} warm-ups', s.warmups) : ''));
  add(hone.say('seed of the inputs'), s.seed || null);
  add(hone.say('one time stamp costs'), s.timer_overhead_ns ? hone.number(s.timer_overhead_ns, 0) + ' ns' : null);
  add(hone.say('outer clock'), s.outer_clock);
  add(hone.say('spans lost'), s.dropped_spans || null);
  add(hone.say('ONNX nodes, executed steps'), now.graph.onnx_nodes ? `${now.graph.onnx_nodes} \u2192 ${now.graph.steps}` : null);
  add(hone.say('graph passes'), now.graph.passes.map((p) => `${p.name} \u00d7${p.hits}`).join(', '));
  add(hone.say('load time'), now.load_ms ? hone.ms(now.load_ms) : null);
  add(hone.say('system'), report.machine.os);
  add(hone.say('options'), report.flags);
  for (const [name, version] of Object.entries(report.versions)) add(name, version);
  add(hone.say('temperature'), report.temperature_c_range ? hone.say('{0} to {1}', ...report.temperature_c_range) + ' \u00b0C' : hone.say('not measured'));
  for (const missing of report.not_measured) add(missing.what, hone.say('not measured: {0}', missing.why));
  return el('section', { class: 'panel', id: 'run' }, el('div', { class: 'head' }, el('h2', {}, hone.say('How this was measured'))), el('dl', { class: 'facts', style: { margin: 0 } }, rows));
};

hone.main = () => {
  const { el } = hone;
  const app = document.getElementById('app');
  let report;
  try {
    report = JSON.parse(document.getElementById('report-data').textContent);
  } catch (error) {
    app.append(el('p', { class: 'empty bad' }, 'The data of this report is damaged: ' + error.message));
    console.error(error.message);
    return;
  }
  hone.language = report.language;
  if (hone.language) document.documentElement.lang = hone.language;
  document.title = report.title + ' \u2013 hone';
  hone.assignColors(report);
  app.append(el('header', {}, hone.brand(), el('span', { class: 'grow' }), hone.theme.button()), ...hone.overview(report));
  const sections = [];
  let pair = null;
  for (const panel of hone.panels) {
    if (panel.when && !panel.when(report)) continue;
    const section = hone.section(panel, report);
    sections.push(section);
    if (!panel.half) pair = null;
    else if (!pair) app.append(pair = el('div', { class: 'grid2' }));
    (pair || app).append(section);
  }
  app.append(hone.footer(report), el('footer', {}, hone.say(report.tool && report.tool !== 'hone' ? 'Shown by hone, measured by {0}. This file is complete: it loads nothing.' : 'Made by {0}. This file is complete: it loads nothing.', [report.tool || 'hone', report.tool_version].filter(Boolean).join(' '))));
  /* Charts need their width, so they draw when everything stands in the page. */
  sections.forEach((section) => section.start());
  document.documentElement.dataset.ready = 'yes';
};
hone.main();
