// What all elements share: texts, nodes, the link to the server, and the element that stays current.

// On another page, the stylesheet comes with the script.
const SHEET = new CSSStyleSheet();
SHEET.replaceSync(globalThis.STYLE ?? [...document.styleSheets[0].cssRules].map((rule) => rule.cssText).join(''));

/** Characters that hide, or that turn the order of others. */
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Returns a text with its hidden characters written out. */
const shown = (text) => String(text).replace(HIDDEN, (it) => `\\u${it.charCodeAt(0).toString(16).padStart(4, '0')}`);

const isNone = (it) => it === undefined || it === null || it === false;

/** Returns a new element. Children that are no nodes become texts, never HTML. */
function h(tag, props, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (isNone(value)) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'style') Object.assign(node.style, value);
    else if (name === 'value') node.value = value;
    else node.setAttribute(name, value === true ? '' : shown(value));
  }
  node.append(...texts(children));
  return node;
}

const texts = (children) =>
  children.flat(Infinity).filter((it) => !isNone(it)).map((it) => (it instanceof Node ? it : shown(it)));

/** Replaces the children of a node, if they differ. The element with the same key keeps the focus. */
function put(node, ...children) {
  const next = texts(children);
  const isSame = (it, old) => (it instanceof Node ? it.isEqualNode(old) : old.nodeType === Node.TEXT_NODE && old.data === it);
  if (next.length === node.childNodes.length && next.every((it, index) => isSame(it, node.childNodes[index]))) return;
  const root = node.getRootNode();
  const active = root.activeElement;
  const key = active && node.contains(active) ? active.dataset.key : undefined;
  node.replaceChildren(...next);
  if (key) [...node.querySelectorAll('[data-key]')].find((it) => it.dataset.key === key)?.focus();
}

const button = (key, text, onclick, more) => h('button', { 'data-key': key, onclick, ...more }, text);

const number = (value) => Math.round(value ?? 0).toLocaleString('en');
/** Returns a number of which only the size matters. */
const short = (value) => value.toLocaleString('en', { notation: 'compact' });
const many = (count, word) => `${number(count)} ${word}${count === 1 ? '' : 's'}`;
const sum = (list, value) => list.reduce((all, it) => all + (value(it) || 0), 0);

/** Returns a share in percent. More than all is said, never hidden. */
function percent(part, whole) {
  if (!whole) return '';
  const share = (100 * part) / whole;
  return `${share > 0 && share < 0.1 ? '< 0.1' : share < 10 && share > 0 ? share.toFixed(1) : Math.round(share)} %`;
}

/** Returns how long ago a time in Unix seconds was. */
function age(time) {
  const seconds = Math.max(0, Date.now() / 1000 - time);
  for (const [name, length] of [['d', 86400], ['h', 3600], ['min', 60]]) {
    if (seconds >= length) return `${Math.floor(seconds / length)} ${name} ago`;
  }
  return 'now';
}

const clock = (time) => new Date(time * 1000).toLocaleString([], { dateStyle: 'short', timeStyle: 'short' });
const pause = (time) => new Promise((done) => setTimeout(done, time));
/** Returns the place of a message in the log. */
const place = (id) => Number(id.slice(4));

/** Maximum time for an answer; the server gives up before. */
const ANSWER = 130_000;
const SHORTEST_PAUSE = 250;
const LONGEST_PAUSE = 5_000;
/** Time between two readings of the same element. */
const REST = 20;

/** The link to one server, which the elements of a page share. */
class Link {
  static all = new Map();

  /** Time without a sign of life after which all is begun anew; the server gives one every 15 s. */
  static silence = 40_000;

  static of(source, token) {
    const base = new URL(source || import.meta.url).origin;
    const key = `${base} ${token ?? ''}`;
    if (!Link.all.has(key)) Link.all.set(key, new Link(base, token));
    return Link.all.get(key);
  }

  constructor(base, token) {
    Object.assign(this, { base, token, elements: new Set(), state: 'waiting', calls: new AbortController() });
    this.options = {
      credentials: token ? 'omit' : 'same-origin',
      cache: 'no-store',
      headers: token ? { authorization: `Bearer ${token}` } : {},
    };
  }

  get mayChange() {
    return !this.token;
  }

  /** Calls a method of the protocol. */
  async call(method, params = {}) {
    const headers = { ...this.options.headers, 'content-type': 'application/json' };
    const body = JSON.stringify({ method, params });
    const signal = AbortSignal.any([this.calls.signal, AbortSignal.timeout(ANSWER)]);
    const response = await fetch(`${this.base}/call`, { ...this.options, method: 'POST', headers, body, signal });
    const text = await response.text();
    if (!response.ok) throw new Error(text.trim());
    const { result, error } = JSON.parse(text);
    if (error) throw Object.assign(new Error(error.message), { kind: error.data?.kind });
    return result;
  }

  join(element) {
    this.elements.add(element);
    this.wake();
    if (this.state === 'live') element.refresh();
  }

  leave(element) {
    this.elements.delete(element);
    this.wake();
  }

  /** Begins or ends the stream of events: a page that nobody sees has none. */
  wake() {
    const wanted = this.elements.size > 0 && !document.hidden;
    if (wanted && !this.reading) {
      this.reading = new AbortController();
      this.read(this.reading.signal);
    } else if (!wanted && this.reading) {
      this.reading.abort();
      this.reading = undefined;
      this.say('waiting', '');
    }
  }

  async read(ended) {
    let rest = SHORTEST_PAUSE;
    while (!ended.aborted) {
      const trial = new AbortController();
      const end = () => trial.abort();
      ended.addEventListener('abort', end);
      try {
        const response = await fetch(`${this.base}/events`, { ...this.options, signal: trial.signal });
        if (!response.ok) throw new Error((await response.text()).trim());
        rest = SHORTEST_PAUSE;
        await this.hear(response.body.pipeThrough(new TextDecoderStream()).getReader(), end);
        this.say('waiting', 'The server has ended; waiting for the next one…');
      } catch (error) {
        if (!ended.aborted) this.say('waiting', `No connection: ${error.message}`);
      }
      ended.removeEventListener('abort', end);
      if (!ended.aborted) await pause(rest);
      rest = Math.min(2 * rest, LONGEST_PAUSE);
    }
  }

  async hear(reader, end) {
    let text = '';
    for (;;) {
      const stalled = setTimeout(() => this.stall(end), Link.silence);
      const { value, done } = await reader.read().finally(() => clearTimeout(stalled));
      if (done) return;
      const events = (text + value).split('\n\n');
      text = events.pop();
      for (const event of events) {
        const data = event.split('\n').filter((line) => line.startsWith('data:'));
        if (data.length) this.tell(JSON.parse(data.map((line) => line.slice(5)).join('\n')));
      }
    }
  }

  /** Ends the stream and all calls of a connection that is dead without having said so. */
  stall(end) {
    this.calls.abort(new Error('The connection was lost before the answer came. See whether it was done.'));
    this.calls = new AbortController();
    end();
  }

  tell(told) {
    const whole = told.find((it) => it.method === 'state');
    if (whole) {
      const { version } = whole.params;
      if (this.mayChange && this.version && this.version !== version) return location.reload();
      this.version = version;
      this.say('live', 'Connected');
    }
    for (const element of this.elements) element.due(whole ? undefined : told);
  }

  say(state, text) {
    this.state = state;
    dispatchEvent(new CustomEvent('contexture-link', { detail: { state, text, base: this.base } }));
  }
}

document.addEventListener('visibilitychange', () => Link.all.forEach((link) => link.wake()));

/** An element that shows what the server has, and keeps showing it. */
class Live extends HTMLElement {
  static observedAttributes = ['session', 'src', 'token'];

  /** Time for which is told what was done. */
  static told = 20_000;

  constructor() {
    super();
    this.attachShadow({ mode: 'open' }).adoptedStyleSheets = [SHEET];
    this.trouble = h('p', { class: 'trouble', role: 'alert', hidden: true });
  }

  connectedCallback() {
    this.link = Link.of(this.getAttribute('src'), this.getAttribute('token'));
    this.link.join(this);
  }

  disconnectedCallback() {
    this.link?.leave(this);
    this.link = undefined;
  }

  attributeChangedCallback(name, before, after) {
    if (before === after || !this.link) return;
    this.shadowRoot.querySelector('.told')?.remove();
    if (name === 'session') return void this.refresh();
    this.disconnectedCallback();
    this.connectedCallback();
  }

  get session() {
    return this.getAttribute('session') ?? undefined;
  }

  /** Returns parameters that name the session, if one was chosen. */
  get about() {
    return this.session ? { session: this.session } : {};
  }

  get mayChange() {
    return this.link?.mayChange;
  }

  call(method, params) {
    return this.link.call(method, params);
  }

  /** Takes notifications, or nothing if everything may have changed. */
  due(told) {
    if (!told || told.some((it) => this.concerns(it))) this.refresh(told);
  }

  concerns({ method, params }) {
    if (method === 'context-changed') return this.managers?.includes(params.manager);
    return [undefined, params.session_id, params.session].includes(this.session);
  }

  /** Reads what is shown. While it is being read, further wishes become one. */
  async refresh(told) {
    if (this.isBusy) {
      this.wishes = [...(this.wishes ?? []), told];
      return;
    }
    this.isBusy = true;
    try {
      let wishes = [told];
      while (wishes && this.link) {
        this.wishes = undefined;
        try {
          await this.load(wishes.includes(undefined) ? undefined : wishes.flat());
          this.trouble.hidden = true;
        } catch (error) {
          put(this.trouble, error.message);
          this.trouble.hidden = false;
        }
        if (this.wishes) await pause(REST);
        wishes = this.wishes;
      }
    } finally {
      this.isBusy = false;
    }
  }
}
