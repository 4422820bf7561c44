'use strict';
/* Hardware counters of the layers, where the record holds any: shares of what the device can do at most as bars behind the figures. */
hone.counterTitles = () => [
  ['compute_pct_of_peak', hone.say('compute'), 0], ['memory_pct_of_peak', hone.say('memory'), 0], ['tensor_pipe_pct', hone.say('tensor units'), 0],
  ['dram_pct_of_peak', 'DRAM', 0], ['l2_pct_of_peak', 'L2', 0], ['l1_pct_of_peak', 'L1', 0], ['l2_hit_pct', hone.say('{0} hits', 'L2'), 0], ['l1_hit_pct', hone.say('{0} hits', 'L1'), 0],
  ['occupancy_pct', hone.say('occupancy'), 0], ['instructions_per_cycle', hone.say('instructions a cycle'), 2], ['issue_slots_pct', hone.say('issue slots'), 0],
  ['branch_uniform_pct', hone.say('branch efficiency'), 0], ['threads_per_instruction', hone.say('threads an instruction'), 1],
  ['cube_busy', 'cube', 0], ['vector_busy', 'vector', 0], ['mte1_busy', 'MTE1', 0], ['mte2_busy', 'MTE2', 0], ['mte3_busy', 'MTE3', 0], ['fixpipe_busy', 'fixpipe', 0],
  ['cube_utilization', hone.say('cube utilisation'), 0], ['llc_miss_pct', hone.say('misses of the last cache'), 1], ['branch_misses_per_1000', hone.say('branch misses in 1000'), 2],
  ['dram_gbs_estimate', hone.say('DRAM, estimated'), 1],
];
hone.counterText = (name, value, digits) => (/_(pct|busy|utilization)(_|$)/.test(name) ? hone.percent(value, digits) : name === 'dram_gbs_estimate' ? hone.number(value, digits) + ' GB/s' : hone.number(value, digits));

hone.panel({
  id: 'counters', title: 'Hardware counters',
  sub: 'What the device itself counted while each step ran; shares are of the most that it can do.',
  when: (report) => [report.baseline, report.optimized].some((p) => p && hone.counted(p).length),
  render(body, report, tools) {
    this.report = report;
    this.which = report.optimized && hone.counted(report.optimized).length ? 'optimized' : 'baseline';
    this.list = hone.el('div', { class: 'wide num' });
    body.append(this.list);
    if (report.optimized) hone.choice(tools, [['baseline', hone.say('before')], ['optimized', hone.say('after')]], this.which, (value) => { this.which = value; this.fill(); });
    this.fill();
  },
  fill() {
    const { el } = hone;
    const layers = hone.counted(this.report[this.which]).sort((a, b) => b.time_ms - a.time_ms).slice(0, 40);
    const columns = hone.counterTitles().filter(([name]) => layers.some((l) => name in l.counters));
    this.list.replaceChildren(el('table', { class: 'counters' },
      el('thead', {}, el('tr', {}, el('th', {}, hone.say('step')), columns.map(([, title]) => el('th', {}, title)), el('th', {}, hone.say('limited by')))),
      el('tbody', {}, layers.map((l) => {
        const row = el('tr', { class: 'counted' }, el('td', { class: 'name' }, l.name), columns.map(([name,, digits]) => this.cell(name, l.counters[name], digits)),
          el('td', {}, l.bound === 'unknown' ? '\u2013' : hone.say(l.bound)));
        return hone.hover(row, () => [l.name, hone.what(l), ...Object.entries(l.counters).map(([name, value]) => name + ' ' + hone.number(value))]);
      }))));
  },
  cell(name, value, digits) {
    if (value === undefined || value === null) return hone.el('td', {}, '\u2013');
    const share = /^(compute|memory|tensor|dram|l1|l2|occupancy|cube|vector|mte|fixpipe).*(pct|busy)/.test(name) ? Math.max(0, Math.min(100, value)) : 0;
    return hone.el('td', { style: share ? { background: `linear-gradient(90deg, var(--accent-soft) ${share}%, transparent ${share}%)` } : {} }, hone.counterText(name, value, digits));
  },
});

/* Layers of which some counter has a title. */
hone.counted = (profile) => profile.layers.filter((l) => l.counters && hone.counterTitles().some(([name]) => name in l.counters));
