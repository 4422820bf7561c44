'use strict';
/* Key figures at the top, and where the time goes: shares by operator type and the closure line. */
hone.overview = (report) => {
  const { el } = hone;
  const now = report.optimized || report.baseline, before = report.optimized ? report.baseline : null;
  const chip = (label, value) => (value === null || value === undefined || value === '' ? null : el('span', { class: 'chip' }, label, label ? ' ' : '', el('b', {}, value)));
  const machine = report.machine;
  const hero = el('section', { class: 'hero' },
    el('h1', { class: 'break' }, report.title),
    el('div', { class: 'chips' },
      chip('', machine.device), chip('threads', machine.threads || null), chip('ISA', machine.isa), chip('precision', report.precision),
      chip('batch', report.batch || 1), chip('', report.profiling_date), chip('commit', report.commit)));
  const card = (label, value, unit, note, kind) => el('div', { class: 'kpi ' + (kind || '') },
    el('div', { class: 'label' }, label), el('div', { class: 'value num' }, value, unit ? el('small', {}, unit) : null),
    el('div', { class: 'note num' }, note || '\u00a0'));
  const kpis = el('div', { class: 'kpis' });
  const change = report.before_after;
  if (change) kpis.append(card('Speed-up, measured', '\u00d7' + hone.number(change.speedup, 2), '',
    change.predicted_gain_pct === null ? hone.ms(change.before_ms) + ' \u2192 ' + hone.ms(change.after_ms)
      : 'predicted \u00d7' + hone.number(1 + change.predicted_gain_pct / 100, 2), 'main'));
  kpis.append(card('Median latency', ...hone.ms(now.latency_ms.median).split(' '),
    before ? 'was ' + hone.ms(before.latency_ms.median) : 'p95 ' + hone.ms(now.latency_ms.p95), change ? '' : 'main'));
  kpis.append(card('Throughput', hone.number(report.throughput_fps), '/s', before ? 'was ' + hone.number(before.throughput.measured_fps) + ' /s' : 'ceiling ' + hone.number(now.throughput.overlapped_fps) + ' /s'));
  kpis.append(now.flops > 0 ? card('Arithmetic', hone.number(now.gflops), 'GFLOP/s', hone.count(now.flops) + 'FLOP a run') : card('Arithmetic', '\u2013', '', 'shapes not recorded'));
  kpis.append(card('Peak memory', ...(report.memory_peak_mb === null ? ['\u2013', ''] : [hone.number(report.memory_peak_mb), 'MiB']), report.memory_peak_source));
  const verdict = report.verification;
  if (verdict) kpis.append(card('Answers', verdict.verdict, '', verdict.inputs + ' inputs, off by ' + hone.tiny(verdict.max_rel)));
  else if (now.latency_ms.count > 1) kpis.append(card('Spread', hone.number(now.latency_ms.cv, 3), 'CV', now.latency_ms.count + ' runs'));
  else kpis.append(card('Spread', '\u2013', '', 'one run tells nothing of it'));
  return [hero, kpis];
};

hone.panel({
  id: 'breakdown', title: 'Where the time goes',
  sub: 'Share of the wall by operator type; everything adds up to an outer clock.',
  render(body, report) {
    const { el } = hone;
    const profiles = [[report.optimized ? 'before' : '', report.baseline], ['after', report.optimized]].filter((p) => p[1]);
    const longest = Math.max(...profiles.map(([, p]) => p.wall_ms));
    for (const [label, p] of profiles) {
      const bar = el('div', { class: 'stack', style: { width: 100 * p.wall_ms / longest + '%' } });
      const part = (name, ms, color, lines) => {
        if (ms > 0) bar.append(hone.hover(el('i', { style: { width: 100 * ms / p.wall_ms + '%', background: color } }), () => [name, hone.ms(ms), hone.percent(100 * ms / p.wall_ms), ...lines]));
      };
      p.types.forEach((t) => part(t.type, t.time_ms, hone.color(t.type), [t.layers + (t.layers === 1 ? ' layer' : ' layers')]));
      const c = p.closure;
      part('gaps and residual', c.gaps_ms + Math.max(0, c.residual_ms), 'var(--soft)', []);
      body.append(label ? el('div', { class: 'stackrow' }, el('span', {}, label), bar) : bar);
    }
    body.append(this.legend(profiles));
    for (const [label, p] of profiles) body.append(this.line(label, p));
  },
  /* Each type that has a colour of its own, its share in each profile, and the rest as one. */
  legend(profiles) {
    const { el } = hone;
    const share = (p, has) => p.types.filter((t) => has(t.type)).reduce((sum, t) => sum + t.pct, 0);
    const entry = (name, color, has) => {
      const shares = profiles.map(([, p]) => share(p, has));
      return shares.some((s) => s >= 0.05) ? el('span', {}, el('i', { class: 'dot', style: { background: color } }), name, el('b', {}, shares.map((s) => hone.percent(s, 1)).join(' \u2192 '))) : null;
    };
    return el('div', { class: 'legend num' }, [...hone.colorOf.keys()].map((type) => entry(type, hone.color(type), (t) => t === type)),
      entry('other', 'var(--c7)', (t) => !hone.colorOf.has(t)));
  },
  line(label, p) {
    const { el } = hone;
    const c = p.closure;
    const terms = [['layers', c.layers_ms, 1], ['reformats', c.reformats_ms], ['host', c.host_ms], ['pre', c.pre_ms], ['post', c.post_ms],
      ['gaps', c.gaps_ms, 1], ['copies', c.copies_ms, 1], ['sync', c.sync_ms, 1]].filter((t) => t[2] || t[1] > 0);
    const line = el('div', { class: 'closure num' }, label ? el('b', {}, label, '\u2002') : null);
    terms.forEach(([name, ms], i) => line.append(...[i ? el('span', { class: 'op' }, '+') : '', name + ' ', el('b', {}, hone.number(ms, 2))].filter(Boolean)));
    line.append(el('span', { class: 'op' }, '='), 'wall ', el('b', {}, hone.number(c.wall_ms, 2) + ' ms'), el('span', { class: 'op' }, '\u00b7'));
    const bad = Math.abs(c.residual_pct) > 2;
    line.append(c.outer_clock ? el('span', { class: bad ? 'bad' : 'good' }, 'residual ' + hone.percent(c.residual_pct, 2)) : el('span', { class: 'muted' }, 'residual not measured'));
    if (c.note) line.append(el('div', {}, c.note));
    if (c.doubt) line.append(el('div', { class: 'bad' }, 'The record contradicts itself: ' + c.doubt));
    return line;
  },
});
