'use strict';
/* Findings: what, why, evidence, command, predicted and measured gain. */
hone.panel({
  id: 'findings', title: 'Findings',
  sub: (report) => (report.findings.length ? hone.say('{0} found: changes of structure first, then fine tuning, then what gives something up and notes; in each the largest predicted gain first.', report.findings.length) : ''),
  render(body, report) {
    const rewritten = report.findings.length && report.before_after;
    if (rewritten) body.append(hone.el('p', { class: 'cause' }, hone.say('About the model before the rewrite ({0}; {1} after it).', hone.ms(rewritten.before_ms), hone.ms(rewritten.after_ms)),
      report.findings.some((f) => f.measured_gain_pct !== null) ? ' ' + hone.say('What has a measured gain is done already.') : ''));
    if (!report.findings.length) body.append(hone.el('p', { class: 'empty' }, report.closure && !(report.closure.wall_ms > 0) ? hone.say('Without times there is nothing to judge.') : hone.say('Nothing worth doing was found.')));
    const most = Math.max(1, ...report.findings.flatMap((f) => [f.predicted_gain_pct, f.measured_gain_pct || 0]));
    report.findings.forEach((finding) => body.append(this.card(finding, most)));
    if (report.left) this.left(body, report);
  },
  /* About the new plan; what was said of the old one, and not done, is still so. */
  left(body, report) {
    const said = new Set(report.findings.filter((f) => f.measured_gain_pct === null).map((f) => f.id));
    const known = report.left.filter((f) => said.has(f.id)), fresh = report.left.filter((f) => !said.has(f.id));
    body.append(hone.el('h3', {}, hone.say('What is left (the plan after the rewrite)')));
    if (known.length) body.append(hone.el('p', { class: 'cause' }, hone.say('Said above, and still so: {0}.', known.map((f) => f.id).join(', '))));
    if (!report.left.length) body.append(hone.el('p', { class: 'empty' }, hone.say('Nothing worth doing was found.')));
    const most = Math.max(1, ...fresh.map((f) => f.predicted_gain_pct));
    fresh.forEach((finding) => body.append(this.card(finding, most)));
  },
  card(f, most) {
    const { el } = hone;
    const text = el('div', {},
      el('h3', {}, f.category === 'note' ? null : el('span', { class: 'tag ' + f.severity }, hone.say(f.severity)),
        f.category === 'note' || f.category === 'trade' ? el('span', { class: 'tag low' }, hone.say(f.category)) : null, f.title),
      f.subject ? el('p', { class: 'subject' }, f.subject) : null,
      el('p', { class: 'cause' }, f.cause),
      this.sources(f).map(([source, list]) => el('div', { class: 'evidence num' }, list.map((e) => el('span', { class: 'chip' }, e.label || e.name, ' ', el('b', {}, hone.number(e.value), e.unit ? ' ' + e.unit : ''))), el('span', { class: 'source' }, source))),
      f.parts.map((part) => this.part(part)),
      f.merged.length ? el('p', { class: 'subject' }, hone.say('The same cause: {0}', f.merged.join(', '))) : null,
      f.commands.map((command, i) => [f.purposes[i] !== 'remedy' && f.purposes[i] !== f.purposes[i - 1] ? el('p', { class: 'subject' }, hone.say({ code: 'In your program:', look: 'To see more:', probe: 'To see more, in your program:' }[f.purposes[i]])) : null, this.command(command)]));
    const meter = (value, color) => el('div', { class: 'meter' }, el('i', { style: { width: 100 * Math.max(0, Math.min(1, value / most)) + '%', background: color } }));
    const gain = f.category === 'note' ? null : el('div', { class: 'gain num' },
      hone.say('predicted, end to end'), el('div', { class: 'big' }, hone.signed(f.predicted_gain_pct)), meter(f.predicted_gain_pct, 'var(--c3)'),
      el('div', {}, hone.say('{0} to {1}, confidence {2}', hone.signed(f.gain_low_pct), hone.signed(f.gain_high_pct), hone.percent(100 * f.confidence, 0))),
      f.measured_gain_pct === null ? null : [el('div', { class: 'meas' }, hone.say('measured') + ' ', el('b', { class: f.measured_gain_pct >= 0 ? 'good' : 'bad' }, hone.signed(f.measured_gain_pct))), meter(f.measured_gain_pct, 'var(--accent)')],
      el('div', {}, hone.say('P {0} of the time, S \u00d7{1}', hone.percent(100 * f.p), hone.number(f.s, 2))),
      el('div', { class: 'muted' }, hone.say('S by {0}: {1}', hone.say(f.basis), f.s_basis)));
    const nodes = new Set([...f.nodes, ...f.beside]);
    return el('article', { class: 'finding ' + f.severity, tabindex: 0,
      onpointerenter: () => hone.light(nodes, f.beside.length), onfocusin: () => hone.light(nodes, f.beside.length),
      onpointerleave: () => hone.light(null), onfocusout: () => hone.light(null) }, text, gain);
  },
  /* One of the causes that share the finding's time. */
  part(p) {
    const { el } = hone, named = p.layers.slice(0, 3).join(', ') + (p.layers.length > 3 ? ' \u2026' : '');
    return el('div', { class: 'part' },
      el('p', { class: 'num' }, el('b', {}, p.label), ' ', hone.ms(p.ms), p.saved_ms >= 0.0005 ? ' \u00b7 ' + hone.say('{0} of it could go', hone.ms(p.saved_ms)) : '',
        ' \u00b7 ' + hone.say('{0} layers: {1}', p.layers.length, named)),
      el('p', { class: 'cause' }, p.why, ' ', p.advice));
  },
  /* Evidence by where it was measured, in the order in which the sources first appear. */
  sources(f) {
    const by = new Map();
    f.evidence.forEach((e) => by.set(e.source, [...(by.get(e.source) || []), e]));
    return [...by];
  },
  command(text) {
    const { el } = hone;
    const button = el('button', { type: 'button', 'aria-label': hone.say('Copy the command'), onclick: async () => {
      try { await navigator.clipboard.writeText(text); button.textContent = hone.say('copied'); } catch (error) { getSelection().selectAllChildren(code); }
      setTimeout(() => { button.textContent = hone.say('copy'); }, 1500);
    } }, hone.say('copy'));
    /* Words stay whole: a break after the hyphens of an option would read as another command. */
    const code = el('code', {}, text.split(' ').map((word, i) => el('span', {}, (i ? ' ' : '') + word)));
    return el('div', { class: 'cmd' }, code, button);
  },
});
