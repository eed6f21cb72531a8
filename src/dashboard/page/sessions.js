// The list of all sessions, those first in which something happens.

/** Number of sessions that are read again when one changes; the list has the latest first. */
const LATEST = 50;
const ORDER = { waiting: 0, working: 0, 'call-open': 0, idle: 1 };
const STATES = { waiting: 'waits for you', 'call-open': 'a call is open' };

class Sessions extends Live {
  constructor() {
    super();
    this.known = new Map();
    this.search = h('input', { type: 'search', 'aria-label': 'Search sessions', placeholder: 'Search', oninput: () => this.show() });
    this.search.addEventListener('keydown', (event) => {
      if (event.key === 'ArrowDown') this.rows.go(this.rows.active);
      if (event.key === 'Enter' && this.rows.items[0]) this.choose(this.rows.items[0].key);
    });
    this.count = h('p', { class: 'quiet', role: 'status' });
    this.rows = new Rows({
      role: 'listbox', itemRole: 'option', label: 'Sessions', heights: [78, 78],
      row: (item) => this.row(item),
      props: (item) => ({ 'aria-selected': item.key === this.session ? 'true' : 'false' }),
      open: (item) => this.choose(item.key),
    });
    setInterval(() => this.show(), 30_000);
    this.shadowRoot.append(h('h2', null, 'Sessions'), this.search, this.count, this.trouble, this.rows.node);
  }

  concerns({ method }) {
    return ['session-changed', 'approvals-changed', 'agents-changed'].includes(method);
  }

  due(told) {
    // The figures of a notification are shown at once, before anything is asked.
    for (const { method, params } of told ?? []) {
      const row = method === 'session-changed' && this.known.get(params.session_id);
      if (row) Object.assign(row, { session: params.session, messages: params.messages, version: params.version });
    }
    if (told) this.soon ??= requestAnimationFrame(() => this.show());
    super.due(told);
  }

  async load(told) {
    const isWhole = !told || told.some(({ params }) => params.method === 'delete-session');
    const [list, waiting] = await Promise.all([
      this.call('list-sessions', isWhole ? {} : { limit: LATEST }),
      this.call('list-approvals'),
    ]);
    if (isWhole) this.known.clear();
    for (const row of list ?? []) this.known.set(row.id, row);
    this.waiting = new Map((waiting ?? []).map((it) => [it.session_id, it]));
    this.show();
    this.dispatchEvent(new CustomEvent('contexture-listed', { detail: this.items.map(({ key }) => this.known.get(key)) }));
  }

  stateOf(row) {
    return this.waiting?.has(row.id) ? 'waiting' : row.state;
  }

  show() {
    this.soon = undefined;
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const items = [...this.known.values()].map((row) => this.item(row));
    const order = (item) => ORDER[item.state] ?? 2;
    items.sort((a, b) => order(a) - order(b) || b.updated - a.updated || place(b.key) - place(a.key));
    this.items = items;
    const found = items.filter((it) => words.every((word) => it.text.includes(word)));
    const waiting = items.filter((it) => it.state === 'waiting').length;
    put(this.count, words.length ? `${number(found.length)} of ` : '', many(items.length, 'session'), waiting > 0 && `, ${number(waiting)} waiting for you`);
    this.rows.set(found);
  }

  item(row) {
    const item = {
      key: row.id, state: this.stateOf(row), title: row.session, part: this.known.get(row.part_of)?.session, updated: row.updated,
      agent: row.agent ?? '', project: (row.project ?? '').replace(/\/$/, '').split('/').pop(), branch: row.branch ?? '',
      tokens: row.tokens, messages: row.messages, words: row.last_words ?? '',
      leave: this.waiting?.get(row.id)?.text,
    };
    item.text = [item.title, item.agent, row.project, item.branch, item.words, item.state].join(' ').toLowerCase();
    return item;
  }

  row(item) {
    const words = [item.part && `part of ${item.part}`, item.agent, item.project, item.branch].filter(Boolean).join(' · ');
    return [
      h('div', { class: 'line' },
        h('span', { class: `dot ${item.state}`, 'aria-hidden': 'true' }),
        h('b', { class: 'title' }, item.title),
        h('span', { class: `tag ${item.state}` }, STATES[item.state] ?? item.state)),
      h('div', { class: 'line quiet' },
        h('span', { class: 'grow' }, words || 'no project'),
        h('span', null, `${many(item.messages, 'message')} · ${short(item.tokens)} tokens · ${age(item.updated)}`)),
      h('div', { class: 'line quiet' }, h('span', { class: 'grow' }, item.leave ?? item.words)),
    ];
  }

  choose(id) {
    if (this.session !== id) this.setAttribute('session', id);
    open(this, id);
  }

  attributeChangedCallback(name, before, after) {
    if (name === 'session') return this.show();
    super.attributeChangedCallback(name, before, after);
  }
}

/** Tells the page that a session was chosen. */
function open(element, id) {
  element.dispatchEvent(new CustomEvent('contexture-open', { detail: id, bubbles: true, composed: true }));
}

/** Returns a cost: what an agent told, or one at list prices, since the server knows no contract. */
const money = ({ cost, model }) => `$${cost < 0.1 ? cost.toFixed(4) : cost.toFixed(2)} ${model ? 'at list price' : 'as the agent told'}`;
