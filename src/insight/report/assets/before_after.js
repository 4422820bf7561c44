'use strict';
/* Before and after: paired bars, and every sample of both runs. */
hone.panel({
  id: 'before-after', title: 'Before and after',
  when: (report) => report.optimized,
  sub: (report) => {
    const v = report.verification;
    if (!v) return hone.say('Answers were not compared.');
    return hone.say('Answers: {0}, on {1} inputs; largest relative difference {2}, allowed {3}.', hone.say(v.verdict), v.inputs, hone.tiny(v.max_rel), hone.tiny(v.tolerance));
  },
  render(body, report) {
    const { el } = hone;
    const a = report.baseline, b = report.optimized;
    const rows = [
      ['Median latency', a.latency_ms.median, b.latency_ms.median, hone.ms, true],
      ['Best latency', a.latency_ms.min, b.latency_ms.min, hone.ms, true],
      ['p95 latency', a.latency_ms.p95, b.latency_ms.p95, hone.ms, true],
      ['Throughput', a.throughput.measured_fps, b.throughput.measured_fps, (v) => hone.number(v) + ' /s', false],
      ['Executed steps', a.layers.length, b.layers.length, (v) => hone.number(v, 0), true],
      ['Bytes moved', a.bytes, b.bytes, hone.bytes, true],
      ['Activations at peak', a.memory.actual_peak_bytes, b.memory.actual_peak_bytes, hone.bytes, true],
    ].filter((row) => row[1] > 0 && row[2] > 0);
    const pairs = el('div', { class: 'pairs num' }, rows.map((row) => this.bars(...row)));
    const right = el('div', {}, el('div', { class: 'caption' }, hone.say('Every measured run')), this.samples(a, b), this.prediction(report));
    body.append(el('div', { class: 'twocol' }, pairs, right));
  },
  bars(label, before, after, format, lessIsBetter) {
    const { el } = hone;
    const most = Math.max(before, after), change = 100 * (after / before - 1);
    const better = Math.abs(change) < 0.5 ? '' : (change < 0) === lessIsBetter ? 'good' : 'bad';
    const bar = (value, color) => el('div', { class: 'row' },
      el('div', { class: 'track' }, el('div', { class: 'fill', style: { width: 100 * value / most + '%', background: color } })),
      el('div', { class: 'val' }, format(value)));
    return el('div', { class: 'pair' },
      el('div', { class: 'top' }, el('span', {}, hone.say(label)), el('span', { class: 'delta ' + better }, hone.signed(change))),
      bar(before, 'var(--before)'), bar(after, 'var(--accent)'));
  },
  /* Histogram of both runs on one scale. */
  samples(a, b) {
    const holder = hone.el('div', {});
    const all = [...a.samples_ms, ...b.samples_ms].sort((x, y) => x - y);
    /* One very slow run would squeeze all others into a line: the axis ends at the 99th percentile. */
    const low = all[0] * 0.98, high = Math.max(all[Math.min(all.length - 1, Math.floor(all.length * 0.99))] * 1.02, low * 1.01);
    hone.drawn(holder, (width) => {
      const height = 172, left = 4, right = width - 4, bottom = height - 26, bins = Math.max(20, Math.min(72, Math.floor(width / 7)));
      const svg = hone.chart(width, height, hone.say('Histogram of the measured latencies before and after'));
      const x = hone.linear(low, high, left, right);
      const counts = (p) => p.samples_ms.reduce((n, v) => {
        n[Math.max(0, Math.min(bins - 1, Math.floor((v - low) / (high - low) * bins)))]++;
        return n;
      }, new Array(bins).fill(0));
      const series = [[counts(a), 'var(--before)', hone.say('before'), a], [counts(b), 'var(--accent)', hone.say('after'), b]];
      const top = Math.max(...series.flatMap((s) => s[0]));
      hone.ticks(low, high, width / 90).forEach((t) => hone.gridX(svg, x(t), 28, bottom, hone.number(t, high - low < 2 ? 2 : high - low < 20 ? 1 : 0), x(t) > right - 16 ? 'end' : x(t) < left + 16 ? 'start' : 'middle'));
      const w = (right - left) / bins;
      for (const [row, [values, color, name, p]] of series.entries()) {
        values.forEach((v, i) => {
          if (!v) return;
          const h = Math.max(3, v / top * (bottom - 36));
          const bar = hone.svg('rect', { x: left + i * w + 0.5, y: bottom - h, width: Math.max(1, w - 1), height: h, rx: 2, fill: color, 'fill-opacity': 0.85 });
          svg.append(hone.hover(bar, () => [name, hone.say('{0} of {1} runs', v, p.samples_ms.length), hone.say('{0} to {1}', hone.ms(low + i * (high - low) / bins), hone.ms(low + (i + 1) * (high - low) / bins))]));
        });
        const m = x(p.latency_ms.median);
        svg.append(hone.svg('line', { x1: m, x2: m, y1: 16 + 12 * row, y2: bottom, stroke: color, 'stroke-width': 1.5, 'stroke-dasharray': '3 3' }),
          hone.svg('text', { x: m, y: 11 + 12 * row, 'text-anchor': m > right - 60 ? 'end' : m < left + 60 ? 'start' : 'middle' }, `${name} ${hone.ms(p.latency_ms.median)}`));
      }
      svg.append(hone.svg('line', { class: 'axis', x1: left, x2: right, y1: bottom, y2: bottom }));
      holder.replaceChildren(svg);
    });
    return holder;
  },
  prediction(report) {
    const { el } = hone;
    const change = report.before_after;
    if (change.predicted_gain_pct === null) return null;
    const most = Math.max(change.predicted_gain_pct, change.measured_gain_pct, 1);
    const bar = (label, value, color) => el('div', { class: 'row', style: { gridTemplateColumns: '74px minmax(0, 1fr) 70px' } }, label,
      el('div', { class: 'track' }, el('div', { class: 'fill', style: { width: 100 * Math.max(0, value) / most + '%', background: color } })),
      el('div', { class: 'val' }, hone.signed(value)));
    return el('div', { class: 'pair num', style: { marginTop: '18px' } }, el('div', { class: 'caption' }, hone.say('Gain: what was predicted, what came out')),
      bar(hone.say('predicted'), change.predicted_gain_pct, 'var(--c3)'), bar(hone.say('measured'), change.measured_gain_pct, 'var(--accent)'));
  },
});
