'use strict';
/* What became of each layer between two profiles: diverging bars, largest difference first. */
hone.panel({
  id: 'comparison', title: 'What changed',
  when: (report) => report.comparison,
  sub: (report) => {
    const c = report.comparison, n = c.counts;
    const p = c.wall.p_value === null ? 'no samples to test' : 'p ' + (c.wall.p_value < 0.0005 ? '< 0.001' : hone.number(c.wall.p_value, 3));
    return `Median run ${hone.ms(c.wall.before_ms)} \u2192 ${hone.ms(c.wall.after_ms)}: ${c.wall.change === 'same' && Math.abs(c.wall.delta_pct) >= 5 ? 'may be chance' : c.wall.change} (${p}). Layers: ${n.slower} slower, ${n.faster} faster, ${n.same} the same, ${n.unclear} unclear; ${n.new} new, ${n.gone} gone, ${n.fused} fused, split or regrouped.`;
  },
  render(body, report, tools) {
    const c = report.comparison;
    this.rows = c.rows;
    this.show = 'all';
    this.all = false;
    this.list = hone.el('div', { class: 'num' });
    for (const warning of c.warnings) body.append(hone.el('p', { class: 'warn' }, 'Compare with care: ' + warning + '.'));
    body.append(this.list);
    hone.choice(tools, [['all', 'all'], ['slower', 'slower'], ['faster', 'faster'], ['new', 'new'], ['gone', 'gone'], ['fused', 'fused']], this.show,
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
      el('div', { class: 'change headrow' }, el('div', {}, 'layer'), el('div', { class: 'swing' }, ''), el('div', { class: 'r' }, 'before'), el('div', { class: 'r' }, 'after'), el('div', { class: 'r' }, 'change'), el('div', { class: 'verdict' }, '')),
      ...shown.map((row) => this.row(row, most)));
    if (!rows.length) this.list.append(el('p', { class: 'empty' }, 'No such layer.'));
    if (rows.length > 20) this.list.append(el('button', { class: 'more', type: 'button', onclick: () => { this.all = !this.all; this.fill(); } },
      this.all ? 'Show the 20 largest differences only' : `Show all ${rows.length} rows`));
  },
  row(r, most) {
    const { el } = hone;
    const width = 50 * Math.abs(r.delta_ms) / most, slower = r.delta_ms > 0;
    const tone = r.change === 'slower' ? 'bad' : r.change === 'faster' ? 'good' : '';
    const word = r.alignment === 'one' ? r.change : r.alignment === 'new' || r.alignment === 'gone' ? r.alignment : `${r.alignment} ${r.before.length} \u2192 ${r.after.length}`;
    const names = (layers) => layers.map((l) => l.name + (l.tactic ? ` (${l.tactic})` : '')).join(', ') || 'nothing';
    const node = el('div', { class: 'change', tabindex: 0 },
      el('div', { class: 'name' }, el('div', {}, r.name), el('div', { class: 'type' }, r.type)),
      el('div', { class: 'swing' }, el('i', { class: tone, style: { left: (slower ? 50 : 50 - width) + '%', width: width + '%' } })),
      el('div', { class: 'r' }, r.before.length ? hone.ms(r.before_ms) : '\u2013'), el('div', { class: 'r' }, r.after.length ? hone.ms(r.after_ms) : '\u2013'),
      el('div', { class: 'r ' + tone }, r.delta_pct === null || !r.after.length ? (slower ? '+' : '\u2212') + hone.ms(Math.abs(r.delta_ms)) : hone.signed(r.delta_pct)),
      el('div', { class: 'verdict ' + tone }, word));
    node.honeNodes = r.nodes.length ? r.nodes : [r.name];
    return hone.hover(node, () => [r.name, 'before: ' + names(r.before), 'after: ' + names(r.after), r.aligned_by ? 'aligned by ' + r.aligned_by : 'nothing on the other side',
      r.p_value === null ? 'not tested' : 'p ' + (r.p_value < 0.0005 ? '< 0.001' : hone.number(r.p_value, 3))]);
  },
});
