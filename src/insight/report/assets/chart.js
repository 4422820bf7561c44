'use strict';
/* Scales and axes for the charts. */
hone.linear = (low, high, from, to) => (v) => from + (high > low ? (v - low) / (high - low) : 0) * (to - from);
hone.log = (low, high, from, to) => {
  const a = Math.log10(low), b = Math.log10(high);
  return (v) => from + (Math.log10(v) - a) / (b - a) * (to - from);
};

/* About `count` round values between low and high. */
hone.ticks = (low, high, count) => {
  const raw = (high - low) / Math.max(1, count);
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= raw);
  const out = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-6; v += step) out.push(v);
  return out;
};

hone.decades = (low, high) => {
  const out = [];
  for (let e = Math.ceil(Math.log10(low) - 1e-9); e <= Math.log10(high) + 1e-9; e++) out.push(10 ** e);
  return out;
};

hone.chart = (width, height, label) => hone.svg('svg', { class: 'chart', viewBox: `0 0 ${width} ${height}`, height, role: 'img', 'aria-label': label });

/* A labelled grid line. */
hone.gridX = (svg, x, top, bottom, label, anchor) => svg.append(
  hone.svg('line', { class: 'axis', x1: x, x2: x, y1: top, y2: bottom }),
  hone.svg('text', { x, y: bottom + 16, 'text-anchor': anchor || 'middle' }, label));
hone.gridY = (svg, y, left, right, label) => svg.append(
  hone.svg('line', { class: 'axis', x1: left, x2: right, y1: y, y2: y }),
  hone.svg('text', { x: left - 8, y: y + 4, 'text-anchor': 'end' }, label));
