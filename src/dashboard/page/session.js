// One session: its figures, its actions, its window, its timeline, its turns, and what it wasted.

const TABS = { window: 'Window', timeline: 'Timeline', turns: 'Turns', waste: 'Waste' };
const METHODS = {
  'prune-session': 'shortening', 'summarize-session': 'summary', 'pin-message': 'pin', rollback: 'return to a checkpoint',
  restore: 'restored view',
};
/** Methods that are to make the window smaller. */
const FOLDS = ['prune-session', 'summarize-session'];
const step = (method) => METHODS[method] ?? method;
/** Number of turns in the table, and of texts in which uses of results are looked for. */
const TURNS = 200;
const LOOKED = 400;
/** Size in tokens below which a result is not called waste. */
const SMALL = 100;

let drawn = 0;

/** Shows a dialog; its promise is true if it was confirmed. */
function ask(element, title, body, confirm, ready) {
  const name = `dialog-${(drawn += 1)}`;
  const yes = confirm && h('button', { class: 'main', value: 'yes', disabled: true }, confirm);
  const dialog = h('dialog', { 'aria-labelledby': name },
    h('form', { method: 'dialog' }, h('h3', { id: name }, title), body,
      h('p', { class: 'buttons' }, h('button', { value: 'no' }, confirm ? 'Cancel' : 'Close'), yes)));
  element.shadowRoot.append(dialog);
  dialog.showModal();
  ready?.then(() => yes.removeAttribute('disabled'), () => {});
  return new Promise((done) => dialog.addEventListener('close', () => {
    done(dialog.returnValue === 'yes');
    dialog.remove();
  }));
}

/** Shows the whole texts of messages. */
function reading(element, title, messages) {
  ask(element, title, h('div', { class: 'texts', tabindex: 0 }, messages.map((it) => [
    h('h4', null, `${it.id} ${it.role}, ${number(it.tokens)} tokens`), it.content && h('pre', null, it.content),
    (it.tool_calls ?? []).map((call) => h('pre', null, `→ ${call.name} ${call.arguments}`)),
  ])));
}

/** Says what an action will do, does it when that is confirmed, and offers to undo it. */
async function propose(element, plan) {
  const body = h('div', { role: 'status', class: 'plan' }, 'Looking…');
  const state = {};
  const look = async () => {
    try {
      const { lines, version } = await plan.look();
      state.version = version;
      put(body, lines.map((line) => h('p', null, line)));
    } catch (error) {
      put(body, h('p', { class: 'trouble' }, error.message));
      throw error;
    }
  };
  const choices = plan.choices?.(() => look().catch(() => {}));
  const confirmed = await ask(element, plan.title, h('div', null, choices, body), plan.confirm, look());
  if (!confirmed) return;
  try {
    const done = await plan.run({ request_key: crypto.randomUUID?.() ?? String(Math.random()), ...(state.version && { if_version: state.version }) });
    announce(element, plan.done(done), plan.undo);
  } catch (error) {
    announce(element, error.kind === 'conflict' ? 'Something changed, so nothing was done. Look again.' : error.message);
  }
}

/** Tells what was done in a live region, with a button that undoes it. */
function announce(element, text, undo) {
  const old = element.shadowRoot.querySelector('.told');
  old?.remove();
  const region = h('div', { class: 'told', role: 'status' });
  element.shadowRoot.append(region);
  put(region, h('span', null, text), undo && h('button', { onclick: () => propose(element, undo()) }, 'Undo…'),
    h('button', { 'aria-label': 'Dismiss', onclick: () => region.remove() }, '×'));
}

/** Returns what a change from a message on costs the provider's prompt cache. */
function cacheCost(log, ids) {
  const first = Math.min(...ids.map(place));
  const after = sum(log.filter((it) => place(it.id) >= first && it.in_view !== false), (it) => it.tokens);
  return Number.isFinite(first) ? `The prompt cache ends before msg-${first}: about ${number(after)} tokens are read anew once.` : '';
}

const fewer = (before, after) => `${number(before)} → ${number(after)} tokens, ${after > before ? `${number(after - before)} MORE` : `${number(before - after)} fewer`}.`;

const KEPT = 'The log keeps every message; undo brings them back.';

/** The plan of a shortening: the least important messages leave the view, or a summary takes their place. */
function shortening(element, only) {
  const state = { method: only ?? 'summarize-session', keep_messages: 10, share: 50 };
  const set = (key, value, again) => {
    state[key] = value;
    again();
  };
  const way = (method, text, again) => h('label', null, h('input', {
    type: 'radio', name: 'how', checked: state.method === method, onchange: () => set('method', method, again),
  }), text);
  const figure = (key, label, again) => h('input', {
    type: 'number', min: 1, value: state[key], 'aria-label': label, onchange: ({ target }) => set(key, Number(target.value), again),
  });
  const params = () => ({ ...element.about, ...(state.method === 'summarize-session'
    ? { keep_messages: state.keep_messages }
    : { brief: true, ...(only ? {} : { keep_tokens: Math.round((state.tokens ?? 0) * state.share / 100) }) }) });
  return {
    title: 'Shorten the conversation', confirm: 'Shorten', undo: () => undoing(element),
    choices: (again) => (only ? undefined : h('fieldset', null, h('legend', null, 'How'),
      way('summarize-session', ' a summary of all but the last ', again), figure('keep_messages', 'Messages to keep', again), ' messages', h('br'),
      way('prune-session', ' leave out the least important, down to ', again), figure('share', 'Percent to keep', again), ' % of the tokens')),
    async look() {
      state.tokens = (await element.call('session-stats', element.about)).tokens;
      const dry = await element.call(state.method, { ...params(), dry_run: true });
      const log = element.log ?? [];
      if (dry.stats.summarized_items !== undefined) {
        const visible = log.filter((it) => it.in_view !== false && it.role !== 'system').slice(0, 1).map((it) => it.id);
        return { version: dry.version, lines: [`${many(dry.stats.summarized_items, 'message')} become a summary; ${number(dry.stats.kept_items)} stay.`,
          fewer(dry.tokens_before, dry.tokens_after), cacheCost(log, visible)] };
      }
      return { version: dry.version, lines: [`${many(dry.stats.items_removed, 'message')} leave the view; ${number(dry.stats.items_kept)} stay.`,
        fewer(dry.stats.original, dry.stats.final), cacheCost(log, dry.removed ?? []), KEPT] };
    },
    run: (envelope) => element.call(state.method, { ...params(), ...envelope }),
    done: ({ stats, tokens_before: before, tokens_after: after }) => `Shortened: ${fewer(before ?? stats.original, after ?? stats.final)}`,
  };
}

/** The plan of an undo, or of a redo. */
function undoing(element, method = 'undo') {
  return {
    title: method === 'undo' ? 'Undo the last step' : 'Redo the step', confirm: method === 'undo' ? 'Undo' : 'Redo',
    async look() {
      const dry = await element.call(method, { ...element.named, dry_run: true });
      return { lines: [`The last step is a ${step(dry.undone ?? dry.redone)}.`,
        `${many(dry.returned?.length ?? 0, 'message')} come back into view${list(dry.returned)}; ${number(dry.left?.length ?? 0)} leave it${list(dry.left)}.`,
        cacheCost(element.log ?? [], [...(dry.returned ?? []), ...(dry.left ?? [])])] };
    },
    run: (envelope) => element.call(method, { ...element.named, ...envelope }),
    done: (result) => `${result.undone ? 'Undone' : 'Redone'}: ${step(result.undone ?? result.redone)}. ${many(result.count, 'message')} in view.`,
    undo: () => undoing(element, method === 'undo' ? 'redo' : 'undo'),
  };
}

/** Names the first ids of a list. */
const list = (ids) => (ids?.length ? ` (${ids.slice(0, 5).join(', ')}${ids.length > 5 ? ', …' : ''})` : '');

/** The plan of a pin: what is pinned is in view, and never left out. */
function pinning(element, item, what) {
  const pinned = what !== 'unpin';
  const names = { pin: 'Pin', unpin: 'Unpin', restore: 'Restore' };
  return {
    title: `${names[what]} ${item.what}`, confirm: names[what],
    async look() {
      return { lines: [
        what === 'restore' ? `It comes back whole with ${number(item.before)} tokens, and is pinned so that it stays.`
          : pinned ? `It keeps its ${number(item.before)} tokens in every window.` : 'It may be left out again when room is needed.',
        item.fate === 'kept' ? 'The window and the prompt cache stay as they are.' : cacheCost(element.log ?? [], item.ids)] };
    },
    run: (envelope) => element.call('pin-message', { ...element.about, ids: item.ids, pinned, ...envelope }),
    done: () => `${names[what]}: done.`,
    undo: () => pinning(element, { ...item, fate: 'kept' }, pinned ? 'unpin' : 'pin'),
  };
}

/** The plan of a return to the view before a step. */
function returning(element, revision) {
  return {
    title: `Restore the view before step ${revision}`, confirm: 'Restore', undo: () => undoing(element),
    async look() {
      const dry = await element.call('restore', { ...element.named, operation: revision - 1, dry_run: true });
      return { lines: [`${many(dry.returned?.length ?? 0, 'message')} come back into view; ${number(dry.left?.length ?? 0)} leave it.`, 'Messages that came since stay.'] };
    },
    run: (envelope) => element.call('restore', { ...element.named, operation: revision - 1, ...envelope }),
    done: (result) => `Restored. ${many(result.count, 'message')} in view.`,
  };
}

class Session extends Live {
  constructor() {
    super();
    this.tab = 'window';
    this.head = h('div', { class: 'head' });
    this.tabs = h('div', { class: 'tabs', role: 'tablist' });
    this.panel = h('div', { class: 'panel', id: 'panel', role: 'tabpanel', tabindex: 0 });
    this.window = h('contexture-window');
    this.window.addEventListener('contexture-window', () => {
      this.log = this.window.log;
      if (this.tab === 'waste') this.show();
      this.showHead();
    });
    this.shadowRoot.append(this.trouble, this.head, this.tabs, h('div', { class: 'holder' }, this.window, this.panel));
    this.tabs.addEventListener('keydown', (event) => {
      const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const keys = Object.keys(TABS);
      if (way) this.choose(keys[(keys.indexOf(this.tab) + way + keys.length) % keys.length], true);
    });
  }

  connectedCallback() {
    for (const name of ['src', 'token']) if (this.hasAttribute(name)) this.window.setAttribute(name, this.getAttribute(name));
    super.connectedCallback();
  }

  async load() {
    const about = this.about;
    if (this.session && this.window.session !== this.session) this.window.setAttribute('session', this.session);
    const first = this.call('session-stats', about).catch(none);
    const named = { session: this.session ?? (await first)?.session };
    const operations = (more) => named.session && this.call('list-operations', { ...named, ...more }).catch(none);
    const [stats, usage, revisions, checkpoints, following, waiting] = await Promise.all([
      first, this.call('usage-log', { ...about, limit: TURNS }).catch(none), operations(),
      operations({ checkpoints: true }), operations({ next: true }), this.call('list-approvals'),
    ]);
    const next = Object.fromEntries((following ?? []).map((it) => [it.next, it]));
    const undo = next.undo && await this.call('undo', { ...named, dry_run: true }).catch(() => undefined);
    Object.assign(this, { stats, named, usage, revisions: revisions ?? [], checkpoints: checkpoints ?? [], next, undo,
      waiting: (waiting ?? []).filter((it) => !this.session || it.session_id === this.session || it.session === this.session) });
    this.showHead();
    this.show();
  }

  get row() {
    return this.known?.find((it) => it.id === this.session);
  }

  /** Returns the turns of which somebody told the tokens. */
  get asked() {
    return (this.usage?.windows ?? []).filter((it) => it.input !== undefined);
  }

  showHead() {
    const { stats, next, row } = this;
    const wasted = this.mostWasted();
    if (!stats) return put(this.head, h('h2', null, 'No session'), h('p', null, 'It appears once one begins.'));
    const last = this.asked.at(-1);
    const buttons = this.mayChange && [
      h('button', { 'data-key': 'shorten', class: 'main', onclick: () => propose(this, shortening(this)) }, 'Shorten…'),
      h('button', { 'data-key': 'note', onclick: () => this.note() }, 'Add a note…'),
      next?.undo && h('button', { 'data-key': 'undo', onclick: () => propose(this, undoing(this)) }, `Undo: ${step(next.undo.method)}…`),
      next?.redo && h('button', { 'data-key': 'redo', onclick: () => propose(this, undoing(this, 'redo')) }, `Redo: ${step(next.redo.method)}…`),
    ];
    put(this.head,
      h('h2', null, stats.session),
      h('p', { class: 'quiet' }, [row?.agent, row?.project, row?.branch, stats.model_known && stats.model, STATES[row?.state]].filter(Boolean).join(' · ')),
      this.waiting.map((it) => h('div', { class: 'banner', role: 'alert' },
        h('p', null, h('b', null, `${row?.agent ?? 'The agent'} waits for leave: `), it.text, it.outside ? ` (reaches ${it.outside})` : ''),
        this.mayChange && h('p', null, ['once', 'refuse'].map((decision) => h('button', { 'data-key': `${decision} ${it.approval}`,
          onclick: () => this.call('approve', { approval: it.approval, decision }).catch((error) => announce(this, error.message)) },
        decision === 'once' ? 'Allow once' : 'Refuse'))))),
      h('dl', { class: 'facts' },
        fact('Size', `${number(stats.items)} in view of ${many(stats.log, 'message')}, ${many(stats.turns, 'turn')}, ${number(stats.tokens)} tokens (${percent(stats.tokens, stats.limit)} of the model's limit)`),
        this.undo && fact('Last step', `${step(this.undo.undone)}: ${many(this.undo.returned?.length ?? 0, 'message')} left out${list(this.undo.returned)}${this.log ? `, ${number(sum(this.undo.returned ?? [], (id) => this.log[place(id) - 1]?.tokens))} tokens` : ''}`),
        stats.turns > 0 && fact('Last turn', !last ? 'no tokens were reported' : `${last.input === null ? 'not reported' : `${number(last.input)} tokens in (${percent(last.cached ?? 0, last.input) || '0 %'} cached), ${number(last.output)} out`}${last.cost ? `, ${money(last)}` : last.provider ? ', no price configured' : ', no cost recorded'}`),
        wasted && fact('Most wasted', wasted)),
      h('p', { class: 'buttons' }, buttons));
    put(this.tabs, Object.entries(TABS).map(([key, name]) => h('button', {
      role: 'tab', id: `tab-${key}`, 'data-key': key, 'aria-selected': String(this.tab === key), 'aria-controls': 'panel', tabindex: this.tab === key ? 0 : -1, onclick: () => this.choose(key),
    }, name)));
    this.panel.setAttribute('aria-labelledby', `tab-${this.tab}`);
  }

  choose(tab, hasFocus) {
    this.tab = tab;
    this.showHead();
    this.show();
    if (hasFocus) this.tabs.querySelector('[aria-selected=true]').focus();
  }

  show() {
    this.window.hidden = this.tab !== 'window';
    this.panel.hidden = this.tab === 'window';
    if (!this.stats || this.tab === 'window') return;
    put(this.panel, { timeline: () => this.timeline(), turns: () => this.turnTable(), waste: () => this.waste() }[this.tab]());
  }

  note() {
    const text = h('textarea', { rows: 5, 'aria-label': 'Note' });
    const manager = this.row?.manager;
    propose(this, {
      title: 'Add a note', confirm: 'Add', choices: () => text,
      look: async () => ({ lines: ['Every later window shows the note, before the conversation.', 'So the prompt cache of the conversation is read anew once.'] }),
      run: ({ request_key }) => this.call('add-item', { manager, content: text.value, type: 'text', metadata: { origin: 'note' }, brief: true, request_key }),
      done: (item) => `Added ${item.id}, ${many(item.tokens, 'token')}.`,
    });
  }

  /** Returns the timeline: turns as a chart, and steps with what each changed. */
  timeline() {
    const windows = this.usage?.windows ?? [];
    const size = (from, to) => windows.filter((it) => it.at >= from && it.at <= to);
    const steps = [
      ...this.revisions.filter((it) => it.method !== 'checkpoint').map((it) => {
        const isFold = FOLDS.includes(it.method);
        const before = size(0, it.created).pop();
        const after = size(it.created + 1, Infinity)[0];
        return { at: it.created, order: it.operation, name: `${step(it.method)}, step ${it.operation}`, revision: it.operation,
          isFold, more: isFold && before && after ? `${fewer(before.total, after.total)}${after.total > before.total ? ' It did not shorten the window.' : ''}` : `at message ${it.position}` };
      }),
      ...this.checkpoints.map((it) => ({ at: it.created ?? it.timestamp, order: 0, name: `checkpoint ${it.checkpoint}`, more: it.message ?? '' })),
    ].sort((a, b) => b.at - a.at || b.order - a.order);
    return [
      h('h3', null, 'Windows'), chart(windows, steps), h('h3', null, 'Steps'),
      steps.length ? h('ol', { class: 'steps' }, steps.map((it) => h('li', null,
        h('span', { class: 'when quiet' }, it.at ? clock(it.at) : ''), h('b', null, it.name), h('span', { class: 'quiet' }, ` ${it.more}`),
        it.revision && this.mayChange && h('button', { 'data-key': `back ${it.revision}`, onclick: () => propose(this, returning(this, it.revision)) }, 'Restore the view before…'))))
        : h('p', null, 'None yet.'),
    ];
  }

  /** Returns the tokens and costs of turns, and their sums for each model apart. */
  turnTable() {
    const asked = [...this.asked].reverse();
    if (!asked.length) return h('p', null, 'No model was asked through Contexture, and no agent recorded its tokens.');
    const priced = asked.some((it) => it.cost);
    const groups = Map.groupBy(asked, (it) => [it.provider, it.model].filter(Boolean).join(': ') || this.row?.agent || 'agent');
    const cells = (it) => [number(it.input), percent(it.cached, it.input) || '0 %', number(it.output), priced && (it.cost ? money(it) : '–')];
    const heads = ['Input', 'Cached', 'Output', priced && 'Cost'];
    const total = (of) => Object.fromEntries(['input', 'cached', 'output', 'cost'].map((key) => [key, sum(of, (it) => it[key])]));
    return [
      h('h3', null, 'By model'),
      table(['Model', 'Turns', ...heads], [...groups].map(([name, of]) => [name, number(of.length), ...cells({ ...of[0], ...total(of) })])),
      h('h3', null, 'By turn, the latest first'),
      table(['Time', 'Window', ...heads], asked.map((it) => [clock(it.at), `${number(it.total)}${it.budget ? ` of ${number(it.budget)}` : ''}`, ...cells(it)])),
    ];
  }

  /** Returns for each tool its calls, its tokens, and those of results that a later equal call repeated. */
  tools() {
    const tools = new Map();
    const latest = new Map();
    for (const message of [...(this.log ?? [])].reverse()) {
      const call = message.answers;
      if (!call) continue;
      const tool = tools.get(call.name) ?? { name: call.name, calls: 0, tokens: 0, inView: 0, again: 0, repeats: [] };
      tools.set(call.name, tool);
      tool.calls += 1;
      tool.tokens += message.tokens;
      if (message.in_view !== false) tool.inView += message.tokens;
      if (!call.same) continue;
      if (latest.has(call.same)) {
        tool.again += message.tokens;
        tool.repeats.push({ ...message, later: latest.get(call.same) });
      } else latest.set(call.same, message.id);
    }
    return [...tools.values()].sort((a, b) => b.again - a.again || b.tokens - a.tokens);
  }

  mostWasted() {
    const most = this.tools()[0];
    return most?.again ? `${most.name}: ${number(most.again)} tokens of results that were asked for again` : undefined;
  }

  waste() {
    const tools = this.tools();
    if (!tools.length) return h('p', null, 'No tool was called.');
    const repeats = tools.flatMap((it) => it.repeats).filter((it) => it.tokens >= SMALL).sort((a, b) => b.tokens - a.tokens);
    return [
      h('h3', null, 'Tools'),
      table(['Tool', 'Calls', 'Tokens of results', 'In view', 'Asked for again'],
        tools.map((it) => [it.name, number(it.calls), number(it.tokens), number(it.inView), number(it.again)])),
      h('h3', null, 'The same again'),
      repeats.length ? h('ul', null, repeats.slice(0, 50).map((it) => h('li', null, `${it.id}: ${it.answers.name} ${it.answers.hint}, ${number(it.tokens)} tokens; asked for again in ${it.later}`)))
        : h('p', null, 'None.'),
      h('h3', null, 'Results that nobody used'),
      this.unused ? [this.unused.length ? h('ul', null, this.unused.slice(0, 50).map((it) => h('li', null, `${it.id}: ${it.answers.name} ${it.answers.hint}, ${number(it.tokens)} tokens; none of its names came up later`)))
        : h('p', null, 'None.')]
        : h('button', { 'data-key': 'look', onclick: () => this.lookForUses() }, 'Look through the messages in view'),
    ];
  }

  /** Finds the results none of whose new names stands in a later answer or call. */
  async lookForUses() {
    const ids = (this.log ?? []).filter((it) => it.in_view !== false).slice(-LOOKED).map((it) => it.id);
    const messages = await this.call('get-messages', { ...this.about, view: 'log', ids });
    const names = (text) => new Set(text.match(/[\p{L}_][\p{L}\p{N}_]*(?:[.\/:-][\p{L}\p{N}_]+)+|\p{L}+_\w+|\p{Ll}+\p{Lu}\w+/gu) ?? []);
    const said = messages.map((it) => (it.role === 'assistant' ? `${it.content} ${(it.tool_calls ?? []).map((call) => call.arguments).join(' ')}` : ''));
    const before = new Set();
    this.unused = [];
    messages.forEach((it, index) => {
      const own = [...names(it.content ?? '')].filter((name) => !before.has(name));
      own.forEach((name) => before.add(name));
      const message = this.log[place(it.id) - 1];
      if (!message?.answers || it.tokens < SMALL || index > messages.length - 3 || !own.length) return;
      const later = said.slice(index + 1).join('\n');
      if (!own.some((name) => later.includes(name))) this.unused.push(message);
    });
    this.unused.sort((a, b) => b.tokens - a.tokens);
    this.show();
  }
}

/** Returns a table; the first cell of a row is its head. Cells that are false are left out. */
function table(heads, rows) {
  const line = (cells, head) => h('tr', null, cells.filter((it) => it !== false).map((it, index) => head(it, index)));
  return h('table', null, h('thead', null, line(heads, (it) => h('th', { scope: 'col' }, it))),
    h('tbody', null, rows.map((row) => line(row, (it, index) => (index ? h('td', null, it) : h('th', { scope: 'row' }, it))))));
}

const fact = (name, value) => [h('dt', null, name), h('dd', null, value)];

/** Returns a chart of the windows' sizes, with a line for each step. */
function chart(windows, steps) {
  if (windows.length < 2) return h('p', { class: 'quiet' }, 'The chart begins with the second window.');
  const [width, height] = [600, 120];
  const svg = (tag, props) => {
    const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [name, value] of Object.entries(props)) node.setAttribute(name, value);
    return node;
  };
  const largest = Math.max(...windows.map((it) => it.total));
  const limit = Math.max(...windows.map((it) => it.budget));
  // A limit that is far away would make all windows look alike.
  const most = limit > 3 * largest ? 1.2 * largest : Math.max(limit, largest);
  const x = (index) => (index * width) / (windows.length - 1);
  const y = (value) => height - (value / most) * (height - 8);
  const path = (value) => windows.map((it, index) => `${index ? 'L' : 'M'}${x(index).toFixed(1)} ${y(value(it)).toFixed(1)}`).join('');
  const node = svg('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', preserveAspectRatio: 'none', class: 'chart' });
  const name = svg('title', {});
  name.append(`Sizes of the last ${windows.length} windows, from ${number(windows[0].total)} to ${number(windows[windows.length - 1].total)} tokens`);
  node.append(name, svg('path', { class: 'area', d: `${path((it) => it.total)}L${width} ${height}L0 ${height}Z` }), limit > 0 ? svg('path', { class: 'limit', d: path((it) => it.budget) }) : '');
  for (const { at, isFold } of steps) {
    const index = windows.findIndex((it) => it.at >= at);
    if (isFold && index > 0) node.append(svg('line', { class: 'fold', x1: x(index), x2: x(index), y1: 0, y2: height }));
  }
  return node;
}
