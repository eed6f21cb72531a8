// A list of which only the rows in sight exist. It is one stop of the Tab key; arrows move within it.

/** Rows beyond the edges that exist, so that scrolling shows no gaps. */
const BEYOND = 6;
/** Windows in which the stylesheet gives a row two lines. */
const NARROW = matchMedia('(max-width: 50rem)');

class Rows {
  /** `row` returns the children of an item's row, `props` its attributes; items have a `key`. */
  constructor({ role, itemRole, label, heights, row, props, open, press, seen }) {
    Object.assign(this, { itemRole, heights, row, props, open, press, seen, items: [], active: 0 });
    this.nodes = new Map();
    this.inner = h('div', { class: 'inner', role: 'presentation' });
    this.node = h('div', { class: 'rows', role, 'aria-label': label, tabindex: -1 }, this.inner);
    this.node.addEventListener('scroll', () => this.draw(), { passive: true });
    this.node.addEventListener('keydown', (event) => this.key(event));
    this.node.addEventListener('click', (event) => {
      const index = this.indexOf(event.target);
      if (index < 0 || event.target.closest('button')) return;
      this.go(index);
      this.open?.(this.items[index]);
    });
    new ResizeObserver(() => this.draw()).observe(this.node);
  }

  indexOf(target) {
    const node = target.closest?.('.row');
    return node && this.inner.contains(node) ? Number(node.dataset.index) : -1;
  }

  set(items) {
    const key = this.items[this.active]?.key;
    this.items = items;
    const kept = key === undefined ? -1 : items.findIndex((item) => item.key === key);
    this.active = Math.max(0, kept >= 0 ? kept : Math.min(this.active, items.length - 1));
    if (this.itemRole === 'row') this.node.setAttribute('aria-rowcount', items.length);
    this.draw();
  }

  draw() {
    this.height = this.heights[Number(NARROW.matches)];
    this.inner.style.height = `${this.items.length * this.height}px`;
    const { scrollTop, clientHeight } = this.node;
    const first = Math.max(0, Math.floor(scrollTop / this.height) - BEYOND);
    const last = Math.min(this.items.length, Math.ceil((scrollTop + clientHeight) / this.height) + BEYOND);
    const kept = new Map();
    const shownItems = [];
    for (let index = first; index < last; index += 1) {
      const item = this.items[index];
      shownItems.push(item);
      kept.set(item.key, this.drawn(item, index));
    }
    // The row with the focus stays, so that the focus is not lost by scrolling.
    const item = this.items[this.active];
    const focused = item && this.nodes.get(item.key);
    if (focused && !kept.has(item.key) && focused.node.contains(focused.node.getRootNode().activeElement)) {
      kept.set(item.key, this.drawn(item, this.active));
    }
    for (const [key, { node }] of this.nodes) if (kept.get(key)?.node !== node) node.remove();
    let before = null;
    for (const { node } of [...kept.values()].reverse()) {
      if (node.nextSibling !== before || node.parentNode !== this.inner) this.inner.insertBefore(node, before);
      before = node;
    }
    this.nodes = kept;
    this.seen?.(shownItems);
  }

  drawn(item, index) {
    const props = {
      role: this.itemRole,
      class: 'row',
      'data-index': index,
      tabindex: index === this.active ? 0 : -1,
      ...(this.itemRole === 'row'
        ? { 'aria-rowindex': index + 1 }
        : { 'aria-setsize': this.items.length, 'aria-posinset': index + 1 }),
      ...this.props(item),
    };
    const stamp = JSON.stringify([props, item]);
    const known = this.nodes.get(item.key);
    const node = known?.node ?? h('div');
    if (known?.stamp !== stamp) {
      for (const [name, value] of Object.entries(props)) {
        if (value === undefined) node.removeAttribute(name);
        else node.setAttribute(name, shown(value));
      }
      put(node, this.row(item));
    }
    node.style.transform = `translateY(${index * this.height}px)`;
    node.style.height = `${this.height}px`;
    return { node, stamp };
  }

  /** Makes a row the active one, in sight and with the focus. */
  go(index) {
    if (!this.items.length) return;
    this.active = Math.max(0, Math.min(index, this.items.length - 1));
    const top = this.active * this.height;
    const { scrollTop, clientHeight } = this.node;
    if (top < scrollTop) this.node.scrollTop = top;
    else if (top + this.height > scrollTop + clientHeight) this.node.scrollTop = top + this.height - clientHeight;
    this.draw();
    this.nodes.get(this.items[this.active].key)?.node.focus({ preventScroll: true });
  }

  key(event) {
    const item = this.items[this.active];
    if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.node.clientHeight / this.height) - 1);
    const ways = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in ways) this.go(this.active + ways[event.key]);
    else if (event.key === 'Enter' && event.target.closest('button') === null) this.open?.(item);
    else if (!this.press?.(item, event.key)) return;
    event.preventDefault();
  }
}
