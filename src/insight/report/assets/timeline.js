'use strict';
/* Timeline of one typical iteration, before and after on the same scale. Wheel zooms, dragging pans. */
hone.panel({
  id: 'timeline', title: 'Timeline',
  sub: 'One typical run; both profiles share the scale.',
  render(body, report, tools) {
    const { el } = hone;
    this.rows = this.gather(report);
    this.full = Math.max(1e-3, ...this.rows.map((row) => row.end));
    this.view = [0, this.full];
    if (!this.rows.length) {
      body.append(el('p', { class: 'empty' }, hone.say('No spans were recorded.')));
      return;
    }
    const canvas = el('canvas', { tabindex: 0, role: 'img', 'aria-label': hone.say('Timeline: plus and minus zoom, arrow keys move') });
    const holder = el('div', { class: 'timeline' }, canvas);
    body.append(holder, el('p', { class: 'hint' }, hone.say('Wheel or + and \u2212 to zoom, drag or arrow keys to move, double click for everything.')));
    this.canvas = canvas;
    hone.drawn(holder, (width) => this.draw(width));
    const button = (label, name, action) => tools.append(el('button', { class: 'seg', type: 'button', 'aria-label': hone.say(name), onclick: action }, label));
    button('+', 'Zoom in', () => this.zoom(0.5, 0.5));
    button('\u2212', 'Zoom out', () => this.zoom(2, 0.5));
    button(hone.say('all'), 'Show everything', () => this.show(0, this.full));
    this.listen();
  },
  /* Rows: one per profile and lane. */
  gather(report) {
    const rows = [];
    const both = Boolean(report.optimized);
    for (const [profile, label] of [[report.baseline, both ? hone.say('before') : ''], [report.optimized, hone.say('after')]]) {
      if (!profile || !profile.spans.length) continue;
      const leaves = profile.spans.filter((span) => span.kind !== 'run');
      const nodes = new Map(profile.layers.map((l) => [l.name, l.onnx_nodes.length ? l.onnx_nodes : [l.name]]));
      const run = profile.spans.find((span) => span.kind === 'run');
      const lanes = [...new Set(leaves.map((span) => span.lane))].sort((a, b) => a - b);
      lanes.forEach((lane, i) => {
        const spans = leaves.filter((span) => span.lane === lane).sort((a, b) => a.start_us - b.start_us || b.dur_us - a.dur_us);
        const named = profile.lanes.find((l) => l.lane === lane);
        const end = Math.max(...spans.map((span) => span.start_us + span.dur_us), run && i === 0 ? run.start_us + run.dur_us : 0);
        const name = named ? named.name : lanes.length > 1 ? hone.say('lane {0}', lane) : '';
        rows.push({ nodes, label: [label, name].filter(Boolean).join(' \u00b7 '), spans, end, gapAbove: i === 0 && rows.length > 0, total: i === 0 ? hone.ms((run ? run.dur_us : end) / 1000) : '' });
      });
    }
    return rows;
  },
  layout: { axis: 22, label: 18, row: 34, gap: 12 },
  top(i) {
    const l = this.layout;
    let y = l.axis;
    for (let k = 0; k <= i; k++) y += (this.rows[k].gapAbove ? l.gap : 0) + l.label + (k < i ? l.row : 0);
    return y;
  },
  draw(width) {
    const l = this.layout, last = this.rows.length - 1, height = this.top(last) + l.row + 2, ratio = devicePixelRatio || 1;
    const canvas = this.canvas, g = canvas.getContext('2d');
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.height = height + 'px';
    g.scale(ratio, ratio);
    const color = (name) => hone.css(name), font = '12px ' + getComputedStyle(document.body).fontFamily;
    const [from, to] = this.view, x = hone.linear(from, to, 0, width);
    this.width = width;
    g.font = font;
    g.textBaseline = 'middle';
    g.fillStyle = color('--ink3');
    g.strokeStyle = color('--line');
    const unit = to - from < 2000 ? [1, ' \u00b5s'] : [1000, ' ms'];
    for (const t of hone.ticks(from / unit[0], to / unit[0], width / 110)) {
      const px = Math.round(x(t * unit[0])) + 0.5;
      g.beginPath(); g.moveTo(px, l.axis - 4); g.lineTo(px, height); g.stroke();
      g.textAlign = px < 30 ? 'left' : px > width - 40 ? 'right' : 'center';
      g.fillText(hone.number(t, (to - from) / unit[0] < 12 ? 2 : 0) + unit[1], px, 8);
    }
    g.textAlign = 'left';
    let drawn = 0;
    const palette = new Map();
    this.rows.forEach((row, i) => {
      const y = this.top(i);
      const label = [row.label, row.total].filter(Boolean).join('  ');
      g.fillStyle = color('--card');
      g.fillRect(0, y - l.label + 1, g.measureText(label).width + 6, l.label - 3);
      g.fillStyle = color('--ink2');
      g.fillText(label, 0, y - l.label / 2);
      g.fillStyle = color('--soft');
      g.fillRect(x(0), y, x(row.end) - x(0), l.row);
      for (const span of row.spans) {
        const a = x(span.start_us), b = x(span.start_us + span.dur_us);
        if (b < 0 || a > width) continue;
        const name = hone.colorName(span.type || span.kind);
        if (!palette.has(name)) palette.set(name, color(name));
        g.fillStyle = palette.get(name);
        const w = Math.max(0.6, b - a - (b - a > 3 ? 1 : 0));
        g.globalAlpha = this.isLit(row, span) ? 1 : 0.25;
        g.fillRect(a, y, w, l.row);
        g.globalAlpha = 1;
        drawn++;
        const room = Math.min(b, width) - Math.max(a, 0) - 10;
        if (room > 44) this.caption(g, span, Math.max(a, 0) + 5, y + l.row / 2, room);
      }
      if (this.lit) this.gaps(row).forEach(([a, b]) => {
        g.strokeStyle = color('--bad');
        g.lineWidth = 2;
        g.strokeRect(x(a) + 1, y + 1, Math.max(2, x(b) - x(a) - 2), l.row - 2);
        g.lineWidth = 1;
      });
    });
    canvas.dataset.drawn = drawn;
    canvas.dataset.lit = this.lit ? this.rows.reduce((n, row) => n + row.spans.filter((span) => this.isLit(row, span)).length, 0) : '';
    canvas.dataset.gaps = this.lit ? this.rows.reduce((n, row) => n + this.gaps(row).length, 0) : '';
  },
  /* The spans of these nodes stay bright, the others step back; null: all are alike. */
  light(nodes, gaps) {
    const lit = nodes && nodes.size ? nodes : null;
    this.marksGaps = Boolean(gaps);
    if (!this.canvas || this.lit === lit) return;
    this.lit = lit;
    this.draw(this.width);
  },
  isLit(row, span) { return !this.lit || (row.nodes.get(span.name) || [span.name]).some((n) => this.lit.has(n)); },
  /* Where nothing runs between two of them. */
  gaps(row) {
    const out = [];
    if (!this.marksGaps) return out;
    let end = -1, lit = false;
    for (const span of row.spans) {
      const now = this.isLit(row, span);
      if (lit && now && end >= 0 && span.start_us > end) out.push([end, span.start_us]);
      if (span.start_us + span.dur_us >= end) { end = span.start_us + span.dur_us; lit = now; }
    }
    return out;
  },
  caption(g, span, x, y, room) {
    let text = span.name || span.type || span.kind;
    if (g.measureText(text).width > room) text = span.type || text;
    if (g.measureText(text).width > room) return;
    g.fillStyle = 'rgba(255,255,255,.96)';
    g.fillText(text, x, y);
  },
  show(from, to) {
    const least = 0.5, span = Math.max(least, Math.min(this.full, to - from));
    from = Math.max(0, Math.min(this.full - span, from));
    this.view = [from, from + span];
    this.draw(this.width);
  },
  zoom(factor, at) {
    const [from, to] = this.view, point = from + (to - from) * at;
    this.show(point - (point - from) * factor, point + (to - point) * factor);
  },
  at(event) {
    const box = this.canvas.getBoundingClientRect(), y = event.clientY - box.top;
    const t = this.view[0] + (event.clientX - box.left) / box.width * (this.view[1] - this.view[0]);
    const i = this.rows.findIndex((row, k) => y >= this.top(k) && y < this.top(k) + this.layout.row);
    if (i < 0) return null;
    const slack = (this.view[1] - this.view[0]) / box.width;
    return this.rows[i].spans.filter((span) => t >= span.start_us - slack && t <= span.start_us + span.dur_us + slack).pop();
  },
  listen() {
    const canvas = this.canvas;
    let drag = null;
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      const box = canvas.getBoundingClientRect();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        const move = event.deltaX / box.width * (this.view[1] - this.view[0]);
        this.show(this.view[0] + move, this.view[1] + move);
      } else this.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY * 0.002))), (event.clientX - box.left) / box.width);
    }, { passive: false });
    canvas.addEventListener('pointerdown', (event) => {
      drag = { x: event.clientX, view: [...this.view] };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointerup', () => { drag = null; });
    canvas.addEventListener('pointercancel', () => { drag = null; });
    canvas.addEventListener('pointerleave', () => hone.tip.hide());
    canvas.addEventListener('pointermove', (event) => {
      if (drag) {
        const move = (drag.x - event.clientX) / canvas.clientWidth * (drag.view[1] - drag.view[0]);
        this.show(drag.view[0] + move, drag.view[1] + move);
        return;
      }
      const span = this.at(event);
      if (!span) return hone.tip.hide();
      hone.tip.show(event, [span.name || span.kind, [span.type, span.kind].filter(Boolean).join(', '), hone.say('{0}, from {1}', hone.ms(span.dur_us / 1000), hone.ms(span.start_us / 1000))]);
    });
    canvas.addEventListener('dblclick', () => this.show(0, this.full));
    canvas.addEventListener('keydown', (event) => {
      const step = (this.view[1] - this.view[0]) * 0.15;
      const action = { '+': () => this.zoom(0.6, 0.5), '=': () => this.zoom(0.6, 0.5), '-': () => this.zoom(1.6, 0.5),
        ArrowLeft: () => this.show(this.view[0] - step, this.view[1] - step), ArrowRight: () => this.show(this.view[0] + step, this.view[1] + step),
        Home: () => this.show(0, this.full) }[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    });
  },
});
