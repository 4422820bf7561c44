'use strict';
/* What became of a time, for readers: of a difference that does not count also why. */
hone.change = (d) => hone.say(d.change !== 'same' ? d.change : d.p_value === null || d.p_value < 0.05 ? 'same: too small to count'
  : Math.abs(d.delta_pct) >= 5 ? 'may be chance: inside the noise' : 'same: inside the noise');

/* What became of each layer between two profiles: diverging bars, largest difference first. */
hone.panel({
  id: 'comparison', title: 'What changed',
  when: (report) => report.comparison,
  sub: (report) => {
    const c = report.comparison, n = c.counts;
    const p = c.wall.p_value === null ? hone.say('no samples to test') : 'p ' + (c.wall.p_value < 0.0005 ? '< 0.001' : hone.number(c.wall.p_value, 3));
    return hone.say('Median run {0} \u2192 {1}: {2} ({3}).', hone.ms(c.wall.before_ms), hone.ms(c.wall.after_ms), hone.change(c.wall), p) + ' '
      + hone.say('Layers: {0} slower, {1} faster, {2} the same, {3} unclear; {4} new, {5} gone, {6} fused, split or regrouped.', n.slower, n.faster, n.same, n.unclear, n.new, n.gone, n.fused);
  },
  render(body, report, tools) {
    const c = report.comparison;
    this.rows = c.rows;
    this.show = 'all';
    this.all = false;
    this.list = hone.el('div', { class: 'num' });
    for (const warning of c.warnings) body.append(hone.el('p', { class: 'warn' }, hone.say('Compare with care: {0}.', warning)));
    body.append(this.list);
    hone.choice(tools, ['all', 'slower', 'faster', 'new', 'gone', 'fused'].map((word) => [word, hone.say(word)]), this.show,
      (value) => { this.show = value; this.all = false; this.fill(); });
    this.fill();
  },
  wanted(row) {
    const lone = row.alignment === 'new' || row.alignment === 'gone';
    if (this.show === 'all') return true;
    if (this.show === 'slower' || this.show === 'faster') return !lone && row.change === this.show;
    if (this.show === 'fused') return !lone && row.alignment !== 'one';
    return row.alignment === this.show;
  },
  fill() {
    const { el } = hone;
    const rows = this.rows.filter((row) => this.wanted(row)), shown = this.all ? rows : rows.slice(0, 20);
    const most = Math.max(1e-9, ...rows.map((row) => Math.abs(row.delta_ms)));
    this.list.replaceChildren(
      el('div', { class: 'change headrow' }, el('div', {}, hone.say('layer')), el('div', { class: 'swing' }, ''), el('div', { class: 'r' }, hone.say('before')), el('div', { class: 'r' }, hone.say('after')), el('div', { class: 'r' }, hone.say('change')), el('div', { class: 'verdict' }, '')),
      ...shown.map((row) => this.row(row, most)));
    if (!rows.length) this.list.append(el('p', { class: 'empty' }, hone.say('No such layer.')));
    if (rows.length > 20) this.list.append(el('button', { class: 'more', type: 'button', onclick: () => { this.all = !this.all; this.fill(); } },
      this.all ? hone.say('Show the 20 largest differences only') : hone.say('Show all {0} rows', rows.length)));
  },
  row(r, most) {
    const { el } = hone;
    const width = 50 * Math.abs(r.delta_ms) / most, slower = r.delta_ms > 0;
    const tone = r.change === 'slower' ? 'bad' : r.change === 'faster' ? 'good' : '';
    const word = r.alignment === 'one' ? hone.say(r.change === 'same' && r.p_value >= 0.05 && Math.abs(r.delta_pct) >= 5 ? 'by chance?' : r.change) : r.alignment === 'new' || r.alignment === 'gone' ? hone.say(r.alignment) : `${hone.say(r.alignment)} ${r.before.length} \u2192 ${r.after.length}`;
    const names = (layers) => layers.map((l) => l.name + (l.tactic ? ` (${l.tactic})` : '')).join(', ') || hone.say('nothing');
    const node = el('div', { class: 'change', tabindex: 0 },
      el('div', { class: 'name' }, el('div', {}, r.name), el('div', { class: 'type' }, r.type)),
      el('div', { class: 'swing' }, el('i', { class: tone, style: { left: (slower ? 50 : 50 - width) + '%', width: width + '%' } })),
      el('div', { class: 'r' }, r.before.length ? hone.ms(r.before_ms) : '\u2013'), el('div', { class: 'r' }, r.after.length ? hone.ms(r.after_ms) : '\u2013'),
      el('div', { class: 'r ' + tone }, r.delta_pct === null || !r.after.length ? (slower ? '+' : '\u2212') + hone.ms(Math.abs(r.delta_ms)) : hone.signed(r.delta_pct)),
      el('div', { class: 'verdict ' + tone }, word));
    node.honeNodes = r.nodes.length ? r.nodes : [r.name];
    return hone.hover(node, () => [r.name, hone.say('before: {0}', names(r.before)), hone.say('after: {0}', names(r.after)), r.aligned_by ? hone.say('aligned by {0}', r.aligned_by) : hone.say('nothing on the other side'),
      r.p_value === null ? hone.say('not tested') : 'p ' + (r.p_value < 0.0005 ? '< 0.001' : hone.number(r.p_value, 3))]);
  },
});
