'use strict';
/* Roofline: achieved speed over arithmetic intensity, under the roofs measured on this machine. */
hone.panel({
  id: 'roofline', title: 'Roofline', half: true,
  sub: 'Each dot is a step, its area the time it takes; lines are measured on this machine.',
  render(body, report) {
    const { el } = hone;
    this.report = report;
    const points = this.points(report.optimized || report.baseline), old = report.optimized ? this.points(report.baseline) : [];
    if (!points.length && !old.length) {
      body.append(el('p', { class: 'empty' }, hone.say('Neither FLOPs nor bytes are known for the steps.')));
      return;
    }
    const holder = el('div', {});
    body.append(holder);
    if (old.length) body.append(el('div', { style: { marginTop: '10px' } },
      el('span', { class: 'key' }, el('i', { class: 'dot', style: { border: '1.5px solid var(--before)', borderRadius: '50%' } }), hone.say('before')),
      el('span', { class: 'key' }, el('i', { class: 'dot', style: { background: 'var(--c0)', borderRadius: '50%' } }), hone.say('after, by operator type'))));
    hone.drawn(holder, (width) => holder.replaceChildren(this.draw(width, points, old)));
  },
  /* Against a roof counts what is executed. */
  speed: (l) => l.executed_gflops || l.gflops,
  points: (profile) => profile.layers.filter((l) => l.flops > 0 && l.bytes > 0 && l.time_ms > 0),
  /* Of roofs with one name the one measured with the run's threads, or the nearest count below. */
  roofs() {
    const threads = this.report.machine.threads || 1, best = new Map();
    for (const roof of this.report.machine.roofs) {
      const rank = (r) => (r.threads <= threads ? r.threads : -r.threads);
      if (!best.has(roof.name) || rank(roof) > rank(best.get(roof.name))) best.set(roof.name, roof);
    }
    const all = [...best.values()];
    return { compute: all.filter((r) => r.gflops > 0).sort((a, b) => a.gflops - b.gflops), memory: all.filter((r) => r.gbs > 0).sort((a, b) => b.gbs - a.gbs) };
  },
  draw(width, points, old) {
    const height = Math.max(300, Math.min(400, Math.round(width * 0.72))), left = 46, right = width - 8, top = 14, bottom = height - 38;
    const svg = hone.chart(width, height, hone.say('Roofline: GFLOP/s over FLOP per byte'));
    const everything = [...points, ...old], { compute, memory } = this.roofs();
    const used = new Set(everything.map((l) => l.arithmetic || l.dtype || 'f32'));
    const shownCompute = compute.filter((r) => used.has(r.name) || r.name === 'f32');
    const pad = (list, low, high) => [10 ** Math.floor(Math.log10(Math.min(...list) * low)), 10 ** Math.ceil(Math.log10(Math.max(...list) * high))];
    const ridges = shownCompute.length && memory.length ? [shownCompute[shownCompute.length - 1].gflops / memory[memory.length - 1].gbs] : [];
    const [x0, x1] = pad([...everything.map((l) => l.intensity), ...ridges], 0.8, 1.5);
    const floor = Math.min(...everything.map((l) => this.speed(l)));
    const [y0, y1] = pad([Math.max(floor, Math.max(...everything.map((l) => this.speed(l))) / 1e5), ...everything.map((l) => this.speed(l)), ...shownCompute.map((r) => r.gflops)].filter((v, i) => i === 0 || v > 0), 0.8, 1.2);
    const x = hone.log(x0, x1, left, right), y = hone.log(y0, y1, bottom, top);
    for (const t of hone.decades(x0, x1)) hone.gridX(svg, x(t), top, bottom, hone.number(t, t < 1 ? Math.round(-Math.log10(t)) : 0));
    for (const t of hone.decades(y0, y1)) hone.gridY(svg, y(t), left, right, hone.number(t, t < 1 ? Math.round(-Math.log10(t)) : 0));
    svg.append(hone.svg('text', { x: right, y: height - 4, 'text-anchor': 'end' }, hone.say('FLOP per byte')), hone.svg('text', { x: left + 5, y: top + 2 }, 'GFLOP/s'));
    const clip = hone.svg('clipPath', { id: 'roofclip' }, hone.svg('rect', { x: left, y: top, width: right - left, height: bottom - top }));
    const lines = hone.svg('g', { 'clip-path': 'url(#roofclip)' }), labels = hone.svg('g', {});
    svg.append(clip, lines);
    const peak = shownCompute.length ? shownCompute[shownCompute.length - 1].gflops : y1;
    memory.forEach((roof, i) => {
      const corner = peak / roof.gbs;
      lines.append(hone.svg('path', { class: 'roof', d: `M${x(x0)},${y(x0 * roof.gbs)}L${x(corner)},${y(peak)}` }));
      /* The label sits on the slope, where the line enters the picture. */
      const enter = Math.max(x0, y0 / roof.gbs), at = 10 ** (Math.log10(enter) + [0.62, 0.36, 0.1, 0.3][i % 4] * (Math.log10(corner) - Math.log10(enter)));
      const angle = Math.atan2(y(at * 2 * roof.gbs) - y(at * roof.gbs), x(at * 2) - x(at)) * 180 / Math.PI;
      labels.append(hone.svg('text', { class: 'rooflabel', x: 0, y: -4, transform: `translate(${x(at)},${y(at * roof.gbs)}) rotate(${angle})` }, `${roof.name} ${hone.number(roof.gbs, 0)} GB/s`));
    });
    shownCompute.forEach((roof) => {
      const from = memory.length ? Math.max(x0, roof.gflops / memory[0].gbs) : x0;
      lines.append(hone.svg('path', { class: 'roof', d: `M${x(from)},${y(roof.gflops)}L${right},${y(roof.gflops)}` }));
      labels.append(hone.svg('text', { class: 'rooflabel', x: right - 2, y: y(roof.gflops) - 5, 'text-anchor': 'end' }, `${roof.name} ${hone.number(roof.gflops, 0)} GFLOP/s`));
    });
    const slowest = Math.max(...everything.map((l) => l.time_ms));
    const dot = (l, was) => {
      const r = 2.5 + 11 * Math.sqrt(l.time_ms / slowest);
      const point = hone.svg('circle', { class: 'point', cx: x(l.intensity), cy: y(Math.max(this.speed(l), y0)), r: was ? Math.max(2, r - 0.75) : r });
      point.style.cssText = was ? 'fill:none;stroke:var(--before);stroke-width:1.5' : `fill:${hone.color(l.type)};fill-opacity:.72;stroke:var(--card);stroke-width:1`;
      point.honeNodes = l.onnx_nodes.length ? l.onnx_nodes : [l.name];
      svg.append(hone.hover(point, () => [l.name, (was ? hone.say('before') + ', ' : '') + l.type, hone.say('{0} GFLOP/s at {1} FLOP per byte', hone.number(this.speed(l)), hone.number(l.intensity)), hone.say('{0}, {1} of the roof, limited by {2}', hone.ms(l.time_ms), hone.percent(l.roof_pct, 0), hone.say(l.bound))]));
    };
    old.slice().sort((a, b) => b.time_ms - a.time_ms).forEach((l) => dot(l, true));
    points.slice().sort((a, b) => b.time_ms - a.time_ms).forEach((l) => dot(l, false));
    labels.style.pointerEvents = 'none';
    svg.append(labels);
    return svg;
  },
});
