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
      chip('', machine.device), chip(hone.say('threads'), machine.threads || null), chip('ISA', machine.isa), chip(hone.say('precision'), report.precision),
      chip(hone.say('batch'), report.batch || null), chip('', report.profiling_date), chip(hone.say('commit'), report.commit)));
  const card = (label, value, unit, note, kind) => el('div', { class: 'kpi ' + (kind || '') },
    el('div', { class: 'label' }, label), el('div', { class: 'value num' }, value, unit ? el('small', {}, unit) : null),
    el('div', { class: 'note num' }, note || '\u00a0'));
  const kpis = el('div', { class: 'kpis' });
  const change = report.before_after;
  const wall = report.comparison && report.comparison.wall;
  if (change) kpis.append(card(hone.say('Speed-up, measured'), '\u00d7' + hone.number(change.speedup, 2), '',
    [wall && wall.change === 'same' ? hone.change(wall) : '', change.predicted_gain_pct === null ? hone.ms(change.before_ms) + ' \u2192 ' + hone.ms(change.after_ms)
      : hone.say('predicted \u00d7{0}', hone.number(1 + change.predicted_gain_pct / 100, 2))].filter(Boolean).join('; '), 'main'));
  kpis.append(card(hone.say('Median latency'), ...hone.ms(now.latency_ms.median).split(' '),
    before ? hone.say('was {0}', hone.ms(before.latency_ms.median)) : 'p95 ' + hone.ms(now.latency_ms.p95), change ? '' : 'main'));
  kpis.append(card(hone.say('Throughput'), hone.number(report.throughput_fps), '/s', before ? hone.say('was {0}', hone.number(before.throughput.measured_fps) + ' /s') : hone.say('ceiling {0} /s', hone.number(now.throughput.overlapped_fps))));
  kpis.append(now.flops > 0 ? card(hone.say('Arithmetic'), hone.number(now.gflops), 'GFLOP/s', hone.say('{0}FLOP a run', hone.count(now.flops))) : card(hone.say('Arithmetic'), '\u2013', '', hone.say('shapes not recorded')));
  kpis.append(card(hone.say('Peak memory'), ...(report.memory_peak_mb === null ? ['\u2013', ''] : [hone.number(report.memory_peak_mb), 'MiB']), hone.say(report.memory_peak_source)));
  const verdict = report.verification;
  if (verdict) kpis.append(card(hone.say('Answers'), hone.say(verdict.verdict), '', hone.say('{0} inputs, off by {1}', verdict.inputs, hone.tiny(verdict.max_rel))));
  else if (now.latency_ms.count > 1) kpis.append(card(hone.say('Spread'), hone.number(now.latency_ms.cv, 3), 'CV', hone.say('{0} runs', now.latency_ms.count)));
  else kpis.append(card(hone.say('Spread'), '\u2013', '', hone.say('one run tells nothing of it')));
  return [hero, kpis];
};

hone.panel({
  id: 'breakdown', title: 'Where the time goes',
  sub: 'Share of the wall by operator type; everything adds up to an outer clock.',
  render(body, report) {
    const { el } = hone;
    const profiles = [[report.optimized ? hone.say('before') : '', report.baseline], [hone.say('after'), report.optimized]].filter((p) => p[1]);
    const longest = Math.max(...profiles.map(([, p]) => p.wall_ms));
    for (const [label, p] of profiles) {
      const bar = el('div', { class: 'stack', style: { width: 100 * p.wall_ms / longest + '%' } });
      const part = (name, ms, color, lines) => {
        if (ms > 0) bar.append(hone.hover(el('i', { style: { width: 100 * ms / p.wall_ms + '%', background: color } }), () => [name, hone.ms(ms), hone.percent(100 * ms / p.wall_ms), ...lines]));
      };
      p.types.forEach((t) => part(t.type, t.time_ms, hone.color(t.type), [hone.say(t.layers === 1 ? '{0} layer' : '{0} layers', t.layers)]));
      const c = p.closure;
      part(hone.say('gaps and residual'), c.gaps_ms + Math.max(0, c.residual_ms), 'var(--soft)', []);
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
      entry(hone.say('other'), 'var(--c7)', (t) => !hone.colorOf.has(t)));
  },
  line(label, p) {
    const { el } = hone;
    const c = p.closure;
    const terms = [['layers', c.layers_ms, 1], ['reformats', c.reformats_ms], ['host', c.host_ms], ['pre', c.pre_ms], ['post', c.post_ms],
      ['gaps', c.gaps_ms, 1], ['copies', c.copies_ms, 1], ['sync', c.sync_ms, 1]].filter((t) => t[2] || t[1] > 0);
    const line = el('div', { class: 'closure num' }, label ? el('b', {}, label, '\u2002') : null);
    terms.forEach(([name, ms], i) => line.append(...[i ? el('span', { class: 'op' }, '+') : '', hone.say(name) + ' ', el('b', {}, hone.number(ms, 2))].filter(Boolean)));
    line.append(el('span', { class: 'op' }, '='), hone.say('wall') + ' ', el('b', {}, hone.number(c.wall_ms, 2) + ' ms'), el('span', { class: 'op' }, '\u00b7'));
    const bad = Math.abs(c.residual_pct) > 2;
    line.append(c.outer_clock ? el('span', { class: bad ? 'bad' : 'good' }, hone.say('residual {0}', hone.percent(c.residual_pct, 2))) : el('span', { class: 'muted' }, hone.say('residual not measured')));
    if (c.note) line.append(el('div', {}, c.note));
    if (c.doubt) line.append(el('div', { class: 'bad' }, hone.say('The record contradicts itself: {0}', c.doubt)));
    return line;
  },
});
