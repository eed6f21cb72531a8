// The window of a session as a bar and a tree: what a model would be sent now, what was left out, why,
// and how to bring it back.

const SECTIONS = {
  'tool-schemas': 'Tool descriptions', 'system-prompt': 'System prompt', 'design-document': 'Design document',
  'type-definitions': 'Types', 'current-unit': 'Current code', 'relevant-tests': 'Tests', implementation: 'Code of tests',
  'context-items': 'Marked items', summary: 'Summary', messages: 'Conversation', 'previous-units': 'Earlier code',
  'repo-map': 'Map of the project',
  grounding: 'Memories',
};
const GROUPS = { section: 'Section', turn: 'Turn', tool: 'Tool', agent: 'Agent', out: 'Left out' };
/** Reasons of the report for which a message cannot be left out. */
const LOCKS = /^(a system prompt|pinned|the (first|last) (user )?message|a tool call that has no result yet|always included)$/;
/** Length of the beginning of a message that a row shows, and number of messages to ask for at once. */
const BEGINNING = 160;
/** Length of the beginning by which arguments of calls are told apart, with their length. */
const SAME = 400;
const AT_ONCE = 60;
/** Number of messages whose outline is read in one call. */
const OUTLINES = 2000;

/** Reads the outlines of all messages of a session, without their texts. */
async function outlines(element, { factor, overhead }, known = []) {
  const fields = ['id', 'role', 'tokens', 'pinned', 'out', 'timestamp', 'tool_calls', 'tool_call_id'];
  const list = [...known];
  for (;;) {
    const from = list.length + 1;
    const part = await element.call('get-messages', {
      ...element.about, view: 'log', fields, from: `msg-${from}`, to: `msg-${from + OUTLINES - 1}`,
    }).catch((error) => {
      if (/msg-/.test(error.message)) return [];
      throw error;
    });
    // A message costs here what it costs in a window.
    for (const it of part ?? []) list.push({ ...outline(it), tokens: Math.ceil(it.tokens * factor) + overhead });
    if ((part ?? []).length < OUTLINES) return withTurns(list);
  }
}

/** Keeps of a message what the page shows: of the arguments of calls only their beginning. */
// Some recordings have no arguments; such calls are not said to be the same.
function outline({ tool_calls: calls, ...message }) {
  const of = ({ id, name, arguments: args }) => ({ id, name, hint: args.slice(0, BEGINNING), same: args.length > 2 && `${name} ${args.length} ${args.slice(0, SAME)}` });
  return { ...message, calls: calls?.length ? calls.map(of) : undefined };
}

/** Adds to each message its turn, and to each result the call that it answers. */
function withTurns(list) {
  const calls = new Map();
  let turn = 0;
  for (const message of list) {
    if (message.role === 'user') turn += 1;
    message.turn = turn;
    for (const call of message.calls ?? []) calls.set(call.id, call);
    if (message.role === 'tool') message.answers = calls.get(message.tool_call_id);
  }
  return list;
}

const PINS = { pin: 'Pin', unpin: 'Unpin', restore: 'Restore' };
/** Returns what can be done with a part that has messages. */
const pinOf = (item) => item.ids?.length > 0 && (item.fate !== 'kept' ? 'restore' : item.pinned ? 'unpin' : 'pin');

const toolOf = (message) => message?.answers?.name ?? message?.calls?.[0]?.name;

class ContextWindow extends Live {
  constructor() {
    super();
    Object.assign(this, { group: 'section', toggled: new Set(), texts: new Map(), parts: [] });
    this.bar = h('div', { class: 'window' });
    this.rows = new Rows({
      role: 'treegrid', itemRole: 'row', label: 'Parts of the window', heights: [34, 58],
      row: (item) => this.row(item),
      props: (item) => ({
        class: `row ${item.fate ?? ''}`, 'aria-level': item.level,
        'aria-expanded': item.isOpen === undefined ? undefined : String(item.isOpen),
      }),
      open: (item) => (item.isOpen === undefined ? this.read(item) : this.toggle(item)),
      press: (item, key) => this.press(item, key),
      seen: (items) => this.fetchTexts(items),
    });
    this.choice = h('div', { class: 'choice', role: 'group', 'aria-label': 'Order of the tree' });
    this.shadowRoot.append(this.trouble, this.bar, this.choice, this.rows.node);
  }

  async load(told) {
    const about = this.about;
    // The outlines of messages stay as they were until the view has another revision.
    const stats = await this.call('session-report', { ...about, windows: 0 }).catch(none);
    const isNew = !told || this.of !== this.session || this.revision !== stats?.revision || this.factor !== stats?.factor;
    Object.assign(this, { revision: stats?.revision, factor: stats?.factor });
    let whose = {};
    if (isNew && this.session) {
      const rows = await this.call('list-sessions') ?? [];
      const row = rows.find((it) => it.id === this.session);
      this.managers = row?.managers ?? (row && [row.manager]);
      whose = { agent: row?.agent ?? 'This conversation', begun: rows.filter((it) => it.part_of === this.session) };
    }
    const [built, log, items] = await Promise.all([
      this.call('count-window', { ...about, explain: true }).catch((error) => {
        if (error.kind === 'budget-too-small') return { trouble: error.message };
        return none(error);
      }),
      stats && outlines(this, stats, isNew ? [] : this.log).catch(none),
      this.managers && this.call('list-items', { managers: this.managers, brief: true }),
    ]);
    // Another session was chosen meanwhile, and is read next.
    if (about.session !== this.session) return;
    if (this.of !== this.session) this.texts.clear();
    Object.assign(this, { built, log: log ?? [], of: this.session, ...whose });
    // A prompt cache has at most what the last window that was sent has at its beginning, too.
    this.cached = built?.report?.stable?.tokens;
    this.parts = built?.report ? this.leaves() : [];
    this.most = built?.max_tokens;
    this.items = new Map((items ?? []).map((it) => [it.id, it]));
    this.show();
    this.dispatchEvent(new CustomEvent('contexture-window', { detail: this }));
  }

  show() {
    const { built } = this;
    if (!built?.report) {
      put(this.bar, h('p', null, built?.trouble ?? 'No session is open.'));
      put(this.choice);
      return this.rows.set([]);
    }
    const { report, tokens, max_tokens: most } = built;
    const sections = report.sections.filter((it) => it.after > 0);
    const part = (it) => h('span', { class: `part s-${it.section}`, style: { width: `${(100 * it.after) / most}%` } });
    const full = (100 * tokens) / most;
    this.size = `${number(tokens)} of ${number(most)} tokens (${percent(tokens, most)})`;
    put(this.bar,
      h('p', null, h('b', null, this.size),
        report.exact ? '' : ', estimated', `; a window has at most ${number(most)} of the model's ${number(built.limit)}${built.limit_from === 'default' ? ', which are assumed since the model is unknown' : ''}`,
        full >= NEARLY_FULL && h('span', { class: 'tag warning' }, 'nearly full')),
      h('div', { class: `bar ${full >= NEARLY_FULL ? 'full' : ''}`, role: 'img', 'aria-label':
        `The window is ${percent(tokens, most)} full. ${sections.map((it) => `${SECTIONS[it.section]} ${number(it.after)}`).join(', ')}` },
      sections.map(part)),
      h('p', { class: 'legend quiet' }, sections.map((it) =>
        h('span', null, h('span', { class: `key s-${it.section}`, 'aria-hidden': 'true' }),
          `${SECTIONS[it.section]} ${percent(it.after, tokens)} `))));
    put(this.choice, Object.entries(GROUPS).map(([key, name]) =>
      button(key, key === 'out' ? `${name} (${many(this.log.length - report.messages.sent, 'message')})` : name,
        () => this.choose(key), { 'aria-pressed': String(this.group === key) })));
    this.rows.set(this.flat(this.roots()));
  }

  choose(group) {
    this.group = group;
    this.show();
  }

  /** Returns the parts of the report as leaves of the tree. */
  leaves() {
    let [turn, at] = [0, 0];
    return this.built.report.parts.map((part) => {
      const ids = part.ids ?? [];
      const messages = ids.map((id) => this.log[place(id) - 1]).filter(Boolean);
      const first = messages[0];
      // A note about a gap belongs to the turn before it.
      turn = first?.turn ?? turn;
      const cached = Math.max(0, Math.min(part.after, this.cached - at));
      at += part.after;
      return {
        key: `part ${part.what} ${part.section}`, section: part.section, what: part.what, ids, fate: part.fate, reason: part.reason,
        tokens: part.after, before: part.before, cached, turn, tool: toolOf(messages.find(toolOf)) ?? (first && `${first.role}, no tool`),
        role: first?.role, calls: messages.flatMap((it) => it.calls ?? []), pinned: messages.some((it) => it.pinned),
      };
    });
  }

  /** Returns what a model would not see whole: left out of the window, or taken out of view. */
  leftOut() {
    const parts = this.parts.filter((it) => (it.fate === 'dropped' || it.fate !== 'kept' && it.ids.length) && it.before > it.tokens);
    const offered = new Set(this.parts.flatMap((it) => it.ids));
    const hidden = this.log.filter((it) => it.out && !offered.has(it.id)).map((it) => ({
      key: `part ${it.id} hidden`, what: it.id, ids: [it.id], fate: 'dropped', tokens: 0, before: it.tokens, role: it.role,
      reason: it.out, calls: it.calls,
    }));
    return [...hidden, ...parts];
  }

  roots() {
    const leaves = this.parts;
    if (this.group === 'out') {
      return this.groups(this.leftOut(), (it) => it.reason, 'out', (name) => name).map((it) => ({
        ...it, isOpen: true, first: undefined, reason: '', children: it.children.map((child) => ({ ...child, reason: '' })) }));
    }
    if (this.group === 'section') {
      return this.built.report.sections.map(({ section, before, after }) => {
        const inside = leaves.filter((it) => it.section === section);
        const children = section === 'messages' ? this.turns(inside, 'turn')
          : section === 'context-items' ? this.itemLeaves() : inside;
        return { key: section, name: SECTIONS[section], tokens: after, before, children, isOpen: /^(messages|context-items)$/.test(section) };
      });
    }
    const inside = leaves.filter((it) => it.section === 'messages');
    if (this.group === 'turn') return this.turns(inside, 'by turn');
    if (this.group === 'agent') {
      return [...this.groups(inside, () => this.agent, 'by agent', (name) => name), ...(this.begun ?? []).map((it) => ({
        key: `by agent ${it.id}`, name: it.session, reason: `${it.agent ?? 'agent'}, in a window of its own`, tokens: it.tokens, before: it.tokens, other: it.id,
      }))];
    }
    return this.groups(inside, (it) => it.tool ?? 'no tool', 'by tool', (name) => name)
      .sort((a, b) => b.tokens - a.tokens);
  }

  turns(leaves, prefix) {
    return this.groups(leaves, (it) => it.turn ?? 0, prefix, (turn) => (turn ? `Turn ${turn}` : 'Before the first turn'));
  }

  groups(leaves, by, prefix, name) {
    const groups = Map.groupBy(leaves, by);
    return [...groups].map(([value, children]) => {
      const tokens = sum(children, (it) => it.tokens);
      const reason = tokens && this.cached >= 0 ? `${percent(sum(children, (it) => it.cached), tokens)} cacheable` : '';
      return { key: `${prefix} ${value}`, name: name(value), children, first: children[0].ids[0], tokens, reason, before: sum(children, (it) => it.before) };
    });
  }

  itemLeaves() {
    return (this.built.items ?? []).map((verdict) => {
      const item = this.items.get(verdict.id);
      const { filename, start_line: from, end_line: to } = item?.metadata ?? {};
      const lines = from ? `:${from}${to && to !== from ? `-${to}` : ''}` : '';
      return {
        key: `item ${verdict.id}`, name: filename ? `${filename}${lines}` : `${item?.metadata?.origin ?? item?.type ?? 'item'} ${verdict.id}`, reason: verdict.reason,
        fate: verdict.fate === 'cut' ? 'shortened' : verdict.fate, tokens: verdict.tokens, before: verdict.fate === 'kept' ? verdict.tokens : item?.tokens,
      };
    });
  }

  flat(nodes, level = 1) {
    return nodes.flatMap((node) => {
      const { children, ...item } = node;
      item.text = this.texts.get(item.ids?.[0] ?? item.first);
      if (!children?.length) return [{ ...item, level }];
      const isOpen = this.toggled.has(node.key) !== Boolean(node.isOpen);
      const messages = sum(children.flatMap((it) => it.children ?? it), (it) => it.ids?.length);
      const count = messages ? many(messages, 'message') : many(children.length, children[0].key.startsWith('item') ? 'item' : 'part');
      return [{ ...item, level, isOpen, count }, ...(isOpen ? this.flat(children, level + 1) : [])];
    });
  }

  row(item) {
    const { tokens, before } = item;
    const isLocked = item.fate === 'kept' && LOCKS.test(item.reason ?? '');
    const label = item.name ?? `${item.what}${item.role ? ` ${item.role}` : ''}${item.calls?.length ? ` → ${item.calls.map((it) => it.name).join(', ')}` : ''}`;
    const hint = item.text || item.calls?.[0]?.hint;
    const action = this.mayChange && pinOf(item);
    return [
      h('span', { role: 'gridcell', class: 'name', style: { paddingLeft: `${0.6 + 1.1 * (item.level - 1)}rem` } },
        h('span', { class: 'twist', 'aria-hidden': 'true' }, item.isOpen === undefined ? '' : item.isOpen ? '▾' : '▸'),
        isLocked && h('span', { class: 'lock', role: 'img', 'aria-label': 'cannot be left out', title: item.reason }, '🔒'),
        h('span', { class: 'what' }, label), item.count && h('span', { class: 'quiet' }, ` (${item.count})`),
        hint && h('span', { class: 'hint quiet' }, hint)),
      h('span', { role: 'gridcell', class: 'reason quiet', title: item.reason }, item.reason ?? ''),
      h('span', { role: 'gridcell', class: 'figure' },
        before === tokens ? '' : h('span', { class: 'quiet' }, `${number(before)} → `), number(tokens)),
      h('span', { role: 'gridcell', class: 'figure share' }, item.other || this.group === 'out' ? '' : percent(tokens, this.built.tokens)),
      h('span', { role: 'gridcell', class: 'do' }, action && button(`do ${item.key}`, PINS[action], () => propose(this, pinning(this, item, action)),
        { tabindex: -1, 'aria-label': `${PINS[action]} ${item.what}` })),
    ];
  }

  press(item, key) {
    if (item.isOpen === { ArrowRight: false, ArrowLeft: true }[key] && item.isOpen !== undefined) return this.toggle(item);
    if (key === 'ArrowLeft') {
      const { items, active } = this.rows;
      const parent = items.slice(0, active).findLastIndex((it) => it.level < item.level);
      if (parent >= 0) this.rows.go(parent);
      return true;
    }
    if (key !== 'p' || !this.mayChange || !pinOf(item)) return false;
    propose(this, pinning(this, item, pinOf(item)));
    return true;
  }

  toggle(item) {
    if (!this.toggled.delete(item.key)) this.toggled.add(item.key);
    this.show();
    return true;
  }

  /** Shows the whole text of a part. */
  async read(item) {
    if (item.other) return open(this, item.other);
    if (!item.ids?.length) return;
    const messages = await this.call('get-messages', { ...this.about, view: 'log', ids: item.ids });
    reading(this, item.what, messages);
  }

  /** Asks for the beginnings of the messages in sight. */
  async fetchTexts(items) {
    const ids = [...new Set(items.map((it) => it.ids?.[0] ?? it.first))].filter((id) => id && !this.texts.has(id)).slice(0, AT_ONCE);
    if (!ids.length || !this.link) return;
    ids.forEach((id) => this.texts.set(id, ''));
    const messages = await this.call('get-messages', { ...this.about, view: 'log', ids, fields: ['id', 'content'], max_bytes: 1 << 20 }).catch(() => []);
    for (const { id, content } of messages.items ?? messages) this.texts.set(id, (content ?? '').slice(0, BEGINNING).replace(/\s+/g, ' '));
    if (this.built?.report) this.rows.set(this.flat(this.roots()));
  }
}
