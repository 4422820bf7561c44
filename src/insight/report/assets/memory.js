'use strict';
/* Memory over time: what the plan holds live and what the system says is resident. */
hone.panel({
  id: 'memory', title: 'Memory over time', half: true,
  sub: (report) => {
    const m = (report.optimized || report.baseline).memory;
    if (!m.predicted_peak_bytes) return '';
    return [hone.say('Activations: {0} planned', hone.bytes(m.predicted_peak_bytes)), m.actual_peak_bytes ? hone.say('{0} used', hone.bytes(m.actual_peak_bytes)) : hone.say('use not measured'),
      m.naive_sum_bytes ? hone.say('{0} without reuse', hone.bytes(m.naive_sum_bytes)) : '', hone.say('weights {0}', hone.bytes(m.weight_bytes)),
      m.rss_peak_bytes ? hone.say('resident at most {0}', hone.bytes(m.rss_peak_bytes)) : ''].filter(Boolean).join(', ') + '.';
  },
  render(body, report) {
    const { el } = hone;
    const series = [], resident = [];
    const both = Boolean(report.optimized);
    for (const [profile, name, color] of [[report.baseline, both ? hone.say('before') : hone.say('planned'), both ? 'var(--before)' : 'var(--accent)'], [report.optimized, hone.say('after'), 'var(--accent)']]) {
      if (!profile || !profile.memory_samples.length) continue;
      series.push({ name, color, points: profile.memory_samples.map((s) => [s.t_us / 1000, s.planned]), area: true });
      /* Weights and code dwarf the activations, so what is resident gets a scale of its own; if it does not move, the
         figure above says all. */
      const rss = profile.memory_samples.filter((s) => s.rss).map((s) => [s.t_us / 1000, s.rss]);
      const values = rss.map((p) => p[1]);
      if (rss.length > 1 && Math.max(...values) > 1.005 * Math.min(...values)) resident.push({ name: both ? hone.say('resident') + ', ' + name : hone.say('resident'), color: both && profile === report.baseline ? 'var(--before)' : 'var(--c1)', points: rss, area: false });
    }
    if (!series.length) {
      body.append(el('p', { class: 'empty' }, hone.say('Memory was not sampled in this run.')));
      return;
    }
    const holder = el('div', {});
    body.append(holder, el('div', { style: { marginTop: '10px' } }, series.concat(resident).map((s) => el('span', { class: 'key' },
      el('i', { class: 'dot', style: { background: s.color } }), s.area && both ? hone.say('planned') + ', ' + s.name : s.name))));
    hone.drawn(holder, (width) => {
      const height = Math.max(300, Math.min(400, Math.round(width * 0.72))), strip = resident.length ? 104 : 0;
      holder.replaceChildren(this.draw(width, height - strip, series, 0));
      if (strip) holder.append(this.draw(width, strip, resident, Math.min(...resident.flatMap((s) => s.points.map((p) => p[1])))));
    });
  },
  draw(width, height, series, least) {
    const left = 64, right = width - 8, top = 10, bottom = height - 30;
    const svg = hone.chart(width, height, hone.say('Memory over time'));
    const end = Math.max(1e-6, ...series.map((s) => s.points[s.points.length - 1][0])), high = Math.max(1, ...series.flatMap((s) => s.points.map((p) => p[1])));
    const low = least ? least - (high - least) * 0.2 : 0, most = high + (high - low) * 0.06;
    const x = hone.linear(0, end, left, right), y = hone.linear(low, most, bottom, top);
    const unit = 1024 ** Math.max(0, Math.min(4, Math.floor(Math.log(most) / Math.log(1024))));
    for (const t of hone.ticks(low / unit, most / unit, (bottom - top) / 36)) hone.gridY(svg, y(t * unit), left, right, hone.bytes(t * unit));
    for (const t of hone.ticks(0, end, width / 90)) svg.append(hone.svg('text', { x: x(t), y: bottom + 16, 'text-anchor': t === 0 ? 'start' : 'middle' }, hone.number(t, end < 5 ? 2 : 0) + ' ms'));
    for (const s of series) {
      /* The plan changes in steps, between which nothing moves. */
      let d = `M${x(s.points[0][0])},${y(s.points[0][1])}`;
      for (const [t, v] of s.points.slice(1)) d += `H${x(t).toFixed(2)}V${y(v).toFixed(2)}`;
      if (s.area) {
        const last = s.points[s.points.length - 1][0];
        const area = hone.svg('path', { d: `${d}L${x(last)},${bottom}L${x(s.points[0][0])},${bottom}Z` });
        area.style.cssText = `fill:${s.color};fill-opacity:.16`;
        svg.append(area);
      }
      const line = hone.svg('path', { d, fill: 'none', 'stroke-width': 1.6, 'stroke-linejoin': 'round' });
      line.style.stroke = s.color;
      svg.append(line);
      const peak = s.points.reduce((a, b) => (b[1] > a[1] ? b : a));
      const mark = hone.svg('circle', { cx: x(peak[0]), cy: y(peak[1]), r: 3.5, class: 'peak' });
      mark.style.fill = s.color;
      svg.append(hone.hover(mark, () => [hone.say('peak, {0}', s.name), hone.bytes(peak[1]), hone.say('at {0}', hone.ms(peak[0]))]));
    }
    return svg;
  },
});
