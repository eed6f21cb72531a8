// One session: its figures, its actions, its window, its timeline, its turns, and what it wasted.

const TABS = { window: 'Window', timeline: 'Timeline', turns: 'Turns', waste: 'Waste' };
/** What the methods are called that change what is in view. */
const CHANGES = {
  'prune-session': 'leaving messages out', 'summarize-session': 'shortening to a summary', 'pin-message': 'pin', rollback: 'going back to a turn', restore: 'undo of several changes',
};
/** Methods that are to make the window smaller. */
const FOLDS = ['prune-session', 'summarize-session'];
const change = (method) => CHANGES[method] ?? method;
const last = (method) => (FOLDS.includes(method) ? 'the last shortening' : change(method));
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
    h('h4', null, `${it.id} ${it.role}`), it.content && h('pre', null, it.content),
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
    const { report } = await element.call('count-window', { ...element.about, explain: true }).catch(() => ({}));
    announce(element, `${plan.done(done)}${report ? ` Sent now: ${sentOf(report, element.log)}.` : ''}`, plan.undo);
  } catch (error) {
    announce(element, error.kind === 'conflict' ? 'Something changed, so nothing was done. Look again.' : error.message);
  }
}

/** Tells for a while what was done in a live region, with a button that undoes it. */
function announce(element, text, undo) {
  element.shadowRoot.querySelector('.told')?.remove();
  const region = h('div', { class: 'told', role: 'status' });
  element.shadowRoot.append(region);
  put(region, h('span', null, text), undo && h('button', { onclick: () => propose(element, undo()) }, 'Undo…'),
    h('button', { 'aria-label': 'Dismiss', onclick: () => region.remove() }, '×'));
  // Whoever is about to press a button has time.
  const { told } = element.constructor;
  const end = () => (region.matches(':hover, :focus-within') ? setTimeout(end, told) : region.remove());
  setTimeout(end, told);
}

/** Returns what it costs the provider's prompt cache that messages go out of the window, or come into it. */
function cacheCost({ parts, log, most }, gone, come = []) {
  const first = Math.min(...[...gone, ...come].map(place));
  if (!parts || !Number.isFinite(first)) return '';
  const stay = parts.filter((it) => it.tokens && !it.ids.some((id) => gone.includes(id)));
  const sent = new Set(stay.flatMap((it) => it.ids));
  const after = sum(stay.filter((it) => it.ids.some((id) => place(id) >= first)), (it) => it.tokens)
    + sum(come.filter((id) => !sent.has(id)), (id) => log[place(id) - 1]?.tokens);
  return `The prompt cache ends before msg-${first}: about ${number(Math.min(after, most))} tokens are read anew once.`;
}

/** Returns how many of the messages in a log a window has, as its report says it. */
const sentOf = ({ messages: { sent, of, shortened } }, log) => {
  const all = log?.length ?? of;
  return `${number(sent)} of ${many(all, 'message')}${shortened ? `, ${number(shortened)} of them shortened` : ''}, ${number(all - sent)} left out`;
};

/** Says where the messages of a change went. */
const went = (method, count, before, after) => `${many(count, 'message')} ${method === FOLDS[1] ? 'in a summary' : after > before ? 'back in view' : 'left out'}`;

const fewer = (before, after) => `${number(before)} → ${number(after)} tokens, ${after > before ? `${number(after - before)} more` : `${number(before - after)} fewer`}.`;

/** The plan of a shortening: the least important messages are left out, or a summary takes their place. */
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
      state.tokens = (await element.call('session-report', element.about)).tokens;
      const dry = await element.call(state.method, { ...params(), dry_run: true });
      const { stats, version } = dry;
      const first = element.parts?.find((it) => it.section === 'messages' && it.role !== 'system');
      return { version, lines: [`${became(stats)}; ${number(stats.kept_items ?? stats.items_kept)} stay.`, fewer(dry.tokens_before ?? stats.original, dry.tokens_after ?? stats.final),
        stats.summarized_items && 'As long as there is room, a window still sends the messages themselves.',
        cacheCost(element, dry.removed ?? [], dry.removed ? [] : first?.ids), 'The log keeps every message; undo brings them back.'] };
    },
    run: (envelope) => element.call(state.method, { ...params(), ...envelope }),
    done: ({ stats }) => `Shortened: ${became(stats)}.`,
  };
}

const became = (stats) => (stats.summarized_items ? `${many(stats.summarized_items, 'message')} in a summary` : `${many(stats.items_removed, 'message')} left out`);

const moved = ({ returned = [], left = [] }) => [[returned, 'back in view'], [left, 'out of view']].filter(([ids]) => ids.length)
  .map(([ids, where]) => `${many(ids.length, 'message')} ${where}${list(ids)}. `).join('') || 'All messages stay where they are.';

/** The plan of an undo, of a redo, or of the undo of a change and all later ones. */
function undoing(element, method = 'undo', before) {
  const [confirm, title] = { undo: ['Undo', 'Undo the last change'], redo: ['Redo', 'Redo the change'], restore: ['Undo', `Undo change ${before} and all later ones`] }[method];
  const call = (more) => element.call(method, { ...element.named, ...(before && { operation: before - 1 }), ...more });
  return {
    title, confirm, undo: before && (() => undoing(element)),
    async look() {
      const dry = await call({ dry_run: true });
      const { left = [], returned = [] } = dry;
      const size = (ids) => sum(ids, (id) => element.log?.[place(id) - 1]?.tokens);
      const tokens = element.stats.tokens + size(returned) - size(left);
      return { lines: [before ? 'Messages that came since stay.' : `The change is ${change(dry.undone ?? dry.redone)}.`, moved(dry),
        tokens > element.most && `Not all will fit: the view then has ${number(tokens)} tokens, and a window at most ${number(element.most)}.`,
        cacheCost(element, left, returned)].filter(Boolean) };
    },
    run: call,
    done: (result) => `${title}: ${moved(result)}`,
  };
}

/** Names the first ids of a list. */
const list = (ids) => (ids?.length ? ` (${ids.slice(0, 5).join(', ')}${ids.length > 5 ? ', …' : ''})` : '');

/** The plan of a pin: what is pinned is never left out. */
function pinning(element, item, what) {
  const pinned = what !== 'unpin';
  return {
    title: `${PINS[what]} ${item.what}`, confirm: PINS[what],
    async look() {
      return { lines: [
        what === 'restore' ? `It comes back whole with ${number(item.before)} tokens, and is pinned so that it stays.`
          : pinned ? `It keeps its ${number(item.before)} tokens in every window.` : 'It may be left out again when room is needed.',
        item.fate === 'kept' ? 'The window and the prompt cache stay as they are.' : cacheCost(element, [], item.ids)] };
    },
    run: (envelope) => element.call('pin-message', { ...element.about, ids: item.ids, pinned, ...envelope }),
    done: () => `${PINS[what]}: done.`,
    undo: () => pinning(element, { ...item, fate: 'kept' }, pinned ? 'unpin' : 'pin'),
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
      const { log, parts, most } = this.window;
      Object.assign(this, { log, parts, most });
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
    const first = this.call('session-report', { ...about, windows: TURNS }).catch(none);
    const named = { session: this.session ?? (await first)?.session };
    const operations = (more) => named.session && this.call('list-operations', { ...named, ...more }).catch(none);
    const [stats, revisions, checkpoints, following, waiting] = await Promise.all([
      first, operations(),
      operations({ checkpoints: true }), operations({ next: true }), this.call('list-approvals'),
    ]);
    const next = Object.fromEntries((following ?? []).map((it) => [it.next, it]));
    const undo = next.undo && await this.call('undo', { ...named, dry_run: true }).catch(() => undefined);
    if (about.session !== this.session) return;
    Object.assign(this, { stats, named, revisions: revisions ?? [], checkpoints: checkpoints ?? [], next, undo,
      waiting: (waiting ?? []).filter((it) => [undefined, it.session_id, it.session].includes(this.session)) });
    this.showHead();
    this.show();
  }

  get row() {
    return this.known?.find((it) => it.id === this.session);
  }

  /** Returns the turns of which somebody told the tokens. */
  get asked() {
    return (this.stats?.windows ?? []).filter((it) => it.input !== undefined);
  }

  /** Returns the requests since the last question as one. */
  get lastTurn() {
    const turn = this.log?.slice(this.log.findLastIndex((it) => it.role === 'user')) ?? [];
    const answers = turn.filter((it) => it.role === 'assistant').length;
    // Times have whole seconds, in which a turn may begin after another one.
    const requests = this.asked.filter((it) => it.at >= turn[0]?.timestamp).slice(-answers);
    return answers && requests.length ? { ...requests[0], ...total(requests) } : undefined;
  }

  /** Returns the window, if it is that of this session by now. */
  get built() {
    return this.window.of === this.session && this.window.built?.report ? this.window.built : undefined;
  }

  /** Returns what a model would be sent now, as the window says it. */
  get sent() {
    const { report, tokens } = this.built;
    const beside = tokens - (report.sections.find((it) => it.section === 'messages')?.after ?? 0);
    return `${sentOf(report, this.log)}; ${this.window.size}${beside ? `, of which ${number(beside)} are not of the conversation` : ''}`;
  }

  /** Returns what the last change took out of view, and why. */
  get lastChange() {
    const { method, count, tokens_before: before, tokens_after: after } = this.next.undo;
    const { returned = [] } = this.undo ?? {};
    const out = this.built && returned.length && this.log[place(returned[0]) - 1]?.out;
    const sent = this.sentIds;
    const still = returned.filter((id) => sent.has(id)).length;
    return [FOLDS.includes(method) ? '' : `${change(method)}: `, `${went(method, count, before, after)}${method === FOLDS[0] && out ? `: ${out}` : still ? `, ${still === count ? 'all' : number(still)} of them still sent since there is room` : ''}; ${fewer(before, after)} `,
      this.built?.report.messages.sent < this.log?.length && button('left', 'Show what is left out', () => {
        this.choose('window');
        this.window.choose('out');
      })];
  }

  showHead() {
    const { stats, next, row, built } = this;
    const wasted = this.mostWasted();
    if (!stats) return put(this.head, h('h2', null, 'No session'), h('p', null, 'It appears once one begins.'));
    const turn = this.lastTurn;
    const tokens = this.window.of === this.session && sum(this.log, (it) => it.tokens);
    const buttons = this.mayChange && [
      button('shorten', 'Shorten…', () => propose(this, shortening(this)), { class: 'main' }),
      button('item', 'Add an item…', () => this.item()),
      ['Undo', 'Redo'].map((name) => [name, name.toLowerCase()]).map(([name, way]) => next?.[way] && button(way, `${name} ${last(next[way].method)}…`, () => propose(this, undoing(this, way)))),
    ];
    put(this.head,
      h('h2', null, stats.session),
      h('p', { class: 'quiet' }, [row?.agent, row?.project, row?.branch, stats.model_known && stats.model, STATES[row?.state]].filter(Boolean).join(' · ')),
      this.waiting.map((it) => h('div', { class: 'banner', role: 'alert' },
        h('p', null, h('b', null, `${row?.agent ?? 'The agent'} waits for you: `), it.text, it.outside ? ` (reaches ${it.outside})` : ''),
        this.mayChange && h('p', null, ['once', 'refuse'].map((decision) => button(`${decision} ${it.approval}`, decision === 'once' ? 'Allow once' : 'Refuse',
          () => this.call('approve', { approval: it.approval, decision }).catch((error) => announce(this, error.message))))))),
      h('dl', { class: 'facts' },
        fact('Conversation', `${many(stats.log, 'message')} in ${many(stats.turns, 'turn')}${tokens ? `, ${number(tokens)} tokens (${percent(tokens, stats.limit)} of the model's limit)` : ''}`),
        built && fact('Sent now', this.sent),
        next?.undo && fact(FOLDS.includes(next.undo.method) ? 'Last shortening' : 'Last change', this.lastChange),
        stats.turns > 0 && fact('Last turn', !turn ? 'no tokens were reported' : [priced(turn) ? `cost ${money(turn)}` : turn.model ? `no price is configured for ${turn.model}` : 'no cost was reported',
          turn.input ? `; ${number(turn.input)} tokens in (${percent(turn.cached, turn.input)} cached), ${number(turn.output)} out` : '']),
        wasted && fact('Most wasted', wasted)),
      h('p', { class: 'buttons' }, buttons));
    put(this.tabs, Object.entries(TABS).map(([key, name]) => button(key, name, () => this.choose(key), {
      role: 'tab', id: `tab-${key}`, 'aria-selected': String(this.tab === key), 'aria-controls': 'panel', tabindex: this.tab === key ? 0 : -1,
    })));
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

  item() {
    const text = h('textarea', { rows: 5, 'aria-label': 'Text' });
    const manager = this.row?.manager;
    propose(this, {
      title: 'Add an item', confirm: 'Add', choices: () => text,
      look: async () => ({ lines: ['Every later window shows the text, before the conversation.', 'So the prompt cache of the conversation is read anew once.'] }),
      run: ({ request_key }) => this.call('add-item', { manager, content: text.value, type: 'text', brief: true, request_key }),
      done: (item) => `Added ${item.id}, ${many(item.tokens, 'token')}.`,
    });
  }

  /** Returns the timeline: the windows as a chart, and the changes with what each moved. */
  timeline() {
    const windows = [...this.stats?.windows ?? []];
    const size = (from, to) => windows.filter((it) => it.at >= from && it.at <= to);
    const changes = [
      ...this.revisions.filter((it) => it.method !== 'checkpoint').map(({ created: at, operation: revision, method, count, tokens_before: was, tokens_after: is }) => {
        const before = size(0, at).pop();
        const after = size(at + 1, Infinity)[0];
        const isFutile = FOLDS.includes(method) && after?.total > before?.total;
        return { at, revision, is: is < was ? 'fold' : is > was ? 'back' : '', name: `${revision} ${change(method)}`,
          more: count ? `${went(method, count, was, is)}; ${fewer(was, is)}${isFutile ? ' It did not shorten the window.' : ''}` : '' };
      }),
      ...this.checkpoints.map((it) => ({ at: it.created ?? it.timestamp, revision: 0, name: `turn ${it.turn}, to go back to`, more: it.message ?? '' })),
    ].sort((a, b) => b.at - a.at || b.revision - a.revision);
    if (this.built) windows.push({ at: Infinity, total: this.built.tokens, budget: this.built.max_tokens });
    return [
      h('h3', null, 'Windows'), chart(windows, changes), h('h3', null, 'Changes'),
      changes.length ? h('ol', { class: 'changes' }, changes.map((it) => h('li', null,
        h('span', { class: 'when quiet' }, it.at ? clock(it.at) : ''), h('b', null, it.name), h('span', { class: 'quiet' }, ` ${it.more}`),
        it.revision > 0 && this.mayChange && button(`back ${it.revision}`, 'Undo from here on…', () => propose(this, undoing(this, 'restore', it.revision))))))
        : h('p', null, 'None yet.'),
    ];
  }

  /** Returns the tokens and costs of turns, and their sums for each model apart. */
  turnTable() {
    const asked = [...this.asked].reverse();
    if (!asked.length) return h('p', null, 'No model was asked through Contexture, and no agent recorded its tokens.');
    const isPriced = asked.some(priced);
    const groups = Map.groupBy(asked, (it) => [it.provider, it.model].filter(Boolean).join(': ') || this.row?.agent || 'agent');
    const cells = (it) => [number(it.input), percent(it.cached, it.input) || '0 %', number(it.output), isPriced && (priced(it) ? money(it) : '–')];
    const heads = ['Input', 'Cached', 'Output', isPriced && 'Cost'];
    return [
      h('h3', null, 'By model'),
      table(['Model', 'Requests', ...heads], [...groups].map(([name, of]) => [name, number(of.length), ...cells({ ...of[0], ...total(of) })])),
      h('h3', null, 'By request, the latest first'),
      table(['Time', 'Window', ...heads], asked.map((it) => [clock(it.at), `${number(it.total)}${it.budget ? ` of ${number(it.budget)}` : ''}`, ...cells(it)])),
    ];
  }

  get sentIds() {
    return new Set((this.parts ?? []).filter((it) => it.tokens).flatMap((it) => it.ids));
  }

  /** Returns for each tool its calls, its tokens, and those of results that a later equal call repeated. */
  tools() {
    const tools = new Map();
    const latest = new Map();
    const sent = this.sentIds;
    for (const message of [...(this.log ?? [])].reverse()) {
      const call = message.answers;
      if (!call) continue;
      const tool = tools.get(call.name) ?? { name: call.name, calls: 0, tokens: 0, sent: 0, again: 0, repeats: [] };
      tools.set(call.name, tool);
      tool.calls += 1;
      tool.tokens += message.tokens;
      if (sent.has(message.id)) tool.sent += message.tokens;
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
      table(['Tool', 'Calls', 'Tokens of results', 'Of these, sent now', 'Of these, asked for again'],
        tools.map((it) => [it.name, number(it.calls), number(it.tokens), number(it.sent), number(it.again)])),
      h('h3', null, 'The same again'),
      results(repeats, (it) => `asked for again in ${it.later}`),
      h('h3', null, 'Results that nobody used'),
      this.unused ? results(this.unused, () => 'none of its names came up later')
        : button('look', 'Look through what is sent', () => this.lookForUses()),
    ];
  }

  /** Finds the results none of whose new names stands in a later answer or call. */
  async lookForUses() {
    const ids = [...this.sentIds].slice(-LOOKED);
    const messages = await this.call('get-messages', { ...this.about, view: 'log', ids });
    const names = (text) => new Set(text.match(/[\p{L}_][\p{L}\p{N}_]*(?:[.\/:-][\p{L}\p{N}_]+)+|\p{L}+_\w+|\p{Ll}+\p{Lu}\w+/gu) ?? []);
    const said = messages.map((it) => (it.role === 'assistant' ? `${it.content} ${(it.tool_calls ?? []).map((call) => call.arguments).join(' ')}` : ''));
    const before = new Set();
    this.unused = [];
    messages.forEach((it, index) => {
      const own = [...names(it.content ?? '')].filter((name) => !before.has(name));
      own.forEach((name) => before.add(name));
      const message = this.log[place(it.id) - 1];
      if (!message?.answers || message.tokens < SMALL || index > messages.length - 3 || !own.length) return;
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

/** Returns a list of results, and why each is named. */
const results = (found, why) => (found.length ? h('ul', null, found.slice(0, 50).map((it) =>
  h('li', null, `${it.id}: ${it.answers.name} ${it.answers.hint}, ${number(it.tokens)} tokens; ${why(it)}`))) : h('p', null, 'None.'));

const fact = (name, value) => value && [h('dt', null, name), h('dd', null, value)];

const priced = (it) => Number.isFinite(it.cost);
/** Returns the tokens and the cost of requests; the cost only if that of each is known. */
const total = (of) => ({ ...Object.fromEntries(['input', 'cached', 'output'].map((key) => [key, sum(of, (it) => it[key])])),
  cost: of.every(priced) ? sum(of, (it) => it.cost) : undefined });

/** Returns a chart of the sizes of windows, of which the last is the present one, and where the changes lie. */
function chart(windows, changes) {
  if (windows.length < 2) return h('p', { class: 'quiet' }, 'The chart begins with the first window that is sent.');
  const svg = (tag, props, ...children) => {
    const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [name, value] of Object.entries(props)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };
  const largest = Math.max(...windows.map((it) => it.total));
  const limit = Math.max(...windows.map((it) => it.budget));
  // A limit that is far away would make all windows look alike.
  const isNear = limit <= 3 * largest;
  const most = isNear ? Math.max(limit, largest) : largest;
  const x = (index) => (100 * index) / (windows.length - 1);
  const path = (value) => windows.map((it, index) => `${index ? 'L' : 'M'}${x(index).toFixed(2)} ${(100 - (100 * value(it)) / most).toFixed(2)}`).join('');
  const after = (it) => windows.findIndex((window) => window.at > it.at);
  // Those between the same two windows stand side by side.
  const mark = (it) => {
    const beside = changes.filter((other) => after(other) === after(it));
    const left = x(Math.max(0, after(it) - (beside.indexOf(it) + 1) / (beside.length + 1)));
    return h('span', { class: `mark ${it.is ?? ''}`, title: it.name, style: { left: `${left}%` } }, it.revision || '');
  };
  const label = `Tokens of the last ${many(windows.length - 1, 'window')}, from ${number(windows[0].total)} to ${number(windows[windows.length - 1].total)} now`;
  return h('div', { class: 'plot' },
    h('div', { class: 'scale quiet' }, [most, most / 2, 0].map((it) => h('span', null, number(it)))),
    h('div', { class: 'chart' },
      svg('svg', { viewBox: '0 0 100 100', role: 'img', 'aria-label': label, preserveAspectRatio: 'none' },
        svg('path', { class: 'area', d: `${path((it) => it.total)}L100 100L0 100Z` }), isNear ? svg('path', { class: 'limit', d: path((it) => it.budget) }) : ''),
      h('div', { 'aria-hidden': 'true' }, changes.map(mark))),
    h('p', { class: 'line quiet' }, h('span', { class: 'grow' }, clock(windows[0].at)), 'now'),
    h('p', { class: 'quiet' }, `Tokens of each window that was sent, and now.${isNear ? ' The dashed line is the limit.' : ''} Numbers are those of the changes below.`));
}
