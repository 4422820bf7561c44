'use strict';
/* Layer bars: mean time of each executed step, with its 95th percentile, share of the roof and what limits it. */
hone.panel({
  id: 'layers', title: 'Layers',
  sub: 'Mean exclusive time of each executed step; the tick is the 95th percentile.',
  render(body, report, tools) {
    this.which = report.optimized ? 'optimized' : 'baseline';
    this.order = 'time';
    this.all = false;
    this.report = report;
    this.list = hone.el('div', { class: 'num' });
    body.append(this.list);
    if (report.optimized) hone.choice(tools, [['baseline', hone.say('before')], ['optimized', hone.say('after')]], this.which, (value) => { this.which = value; this.fill(); });
    hone.choice(tools, [['time', hone.say('slowest')], ['run', hone.say('in order')]], this.order, (value) => { this.order = value; this.fill(); });
    this.fill();
  },
  fill() {
    const { el } = hone;
    const layers = this.report[this.which].layers.slice();
    if (this.order === 'time') layers.sort((a, b) => (b.p50_ms || b.time_ms) - (a.p50_ms || a.time_ms));
    const shown = this.all ? layers : layers.slice(0, 15);
    const most = Math.max(1e-9, ...layers.map((l) => Math.max(l.time_ms, Math.min(l.p95_ms, 1.25 * l.time_ms))));
    const head = el('div', { class: 'layer headrow' }, el('div', {}, hone.say('step')), el('div', { class: 'bar' }), el('div', { class: 'r' }, hone.say('time')), el('div', { class: 'r' }, hone.say('share')),
      el('div', { class: 'r roofcol' }, hone.say('of roof')), el('div', { class: 'bound', style: { background: 'none', padding: 0, color: 'inherit' } }, hone.say('limited by')));
    this.list.replaceChildren(head, ...shown.map((layer) => this.row(layer, most)));
    if (layers.length > 15) this.list.append(el('button', { class: 'more', type: 'button', onclick: () => { this.all = !this.all; this.fill(); } },
      this.all ? hone.say('Show the first 15 only') : hone.say('Show all {0} steps', layers.length)));
  },
  row(l, most) {
    const { el } = hone;
    const detail = () => [l.name, hone.what(l), l.tactic ? hone.say('tactic {0}', l.tactic) : hone.say('no tactic recorded'), [l.shape_in, l.shape_out].filter(Boolean).join(' \u2192 '),
      [l.codes_in, l.codes_out].filter(Boolean).join(' \u2192 '),
      hone.say('p50 {0}, p95 {1}, min {2}, CV {3}', hone.ms(l.p50_ms), hone.ms(l.p95_ms), hone.ms(l.min_ms), hone.number(l.cv, 3)),
      l.gflops > 0 || l.gbs > 0 ? `${hone.number(l.gflops)} GFLOP/s, ${hone.number(l.gbs)} GB/s` : '',
      l.executed_flops > 0 && Math.abs(l.executed_flops / l.flops - 1) > 0.005 ? hone.say('executed: {0}FLOP of {1}FLOP, {2} GFLOP/s', hone.count(l.executed_flops), hone.count(l.flops), hone.number(l.executed_gflops)) : '', l.onnx_nodes.length ? hone.say('from {0}', l.onnx_nodes.join(', ')) : '', hone.boundSource(l)].filter(Boolean);
    const row = el('div', { class: 'layer' },
      el('div', { class: 'name' }, el('div', {}, l.name), el('div', { class: 'type' }, hone.what(l))),
      el('div', { class: 'bar' }, el('i', { style: { width: 100 * l.time_ms / most + '%', background: hone.color(l.type) } }),
        l.p95_ms > 0 ? el('u', { style: { left: `calc(${Math.min(100, 100 * l.p95_ms / most)}% - 1px)` } }) : null),
      el('div', { class: 'r' }, hone.ms(l.time_ms)), el('div', { class: 'r muted' }, hone.percent(l.pct, 1)),
      el('div', { class: 'r roofcol muted' }, l.roof_pct > 0 ? hone.percent(l.roof_pct, 0) : '\u2013'),
      el('div', { class: 'bound' }, l.bound === 'unknown' ? '\u2013' : hone.say(l.bound) + (l.bound === 'memory' && l.memory_level ? ' ' + l.memory_level : '')));
    row.honeNodes = l.onnx_nodes.length ? l.onnx_nodes : [l.name];
    return hone.hover(row, detail);
  },
});

/* What stands behind a layer's bound. */
hone.boundSource = (l) => ({ counters: hone.say('bound by its hardware counters'), roofs: hone.say('bound by measured roofs'), ridge: hone.say('bound by intensity alone') }[l.bound_source] || '')
  + (l.bound_source && l.bound_confidence < 0.5 ? ', ' + hone.say('with low confidence') : '');

/* Marks the rows, points and spans that a finding speaks of, and the gaps between them where it is about those. */
hone.light = (nodes, gaps) => {
  for (const row of document.querySelectorAll('.layer, .change')) row.classList.toggle('lit', Boolean(nodes && row.honeNodes && row.honeNodes.some((n) => nodes.has(n))));
  for (const point of document.querySelectorAll('.point')) point.style.opacity = !nodes || !nodes.size || point.honeNodes.some((n) => nodes.has(n)) ? '' : '0.15';
  hone.panels.find((panel) => panel.id === 'timeline').light(nodes, gaps);
};
