// The status of a session, for a status bar or another page, and the seed's widget with a button.

/** Share of the limit in percent above which a session is nearly full. */
const NEARLY_FULL = 80;

class Status extends Live {
  connectedCallback() {
    this.shadowRoot.append(this.trouble, (this.body = h('div', { class: 'status' })));
    super.connectedCallback();
  }

  async load() {
    const [stats] = await Promise.all([this.call('session-report', this.about).catch(none)]);
    this.stats = stats;
    this.lastActivity = stats ? Date.now() : this.lastActivity ?? null;
    this.render();
  }

  /** Returns the status in the form of the widgets of dashboards. */
  getStatus() {
    const { stats } = this;
    const tokens = stats?.tokens ?? 0;
    const used = stats?.utilization_percent ?? 0;
    return {
      state: stats?.needs_pruning ? 'warning' : tokens > 0 ? 'active' : 'idle',
      primaryMetric: `${number(tokens)} tokens`,
      secondaryMetric: `${used.toFixed(0)}% used`,
      lastActivity: this.lastActivity,
      message: stats?.needs_pruning ? 'Needs pruning' : 'Healthy',
    };
  }

  render() {
    const { state, primaryMetric, secondaryMetric, message } = this.getStatus();
    put(this.body,
      h('span', { class: `dot ${state}`, 'aria-hidden': 'true' }),
      h('span', { class: 'words', role: 'status' },
        h('b', null, state), ' ', primaryMetric, ' · ', secondaryMetric, ' · ', message));
  }
}

const none = (error) => {
  if (error.kind === 'no-such-session' || error.kind === 'no-session') return undefined;
  throw error;
};

/** The widget of the seed: figures, a warning, and a button. */
class ContextManagerWidget extends Status {
  static widget = {
    element: 'context-manager-widget',
    displayName: 'Context Manager',
    icon: '🧠',
    category: 'intelligence',
    // The server tells of changes, so nothing is asked at intervals.
    updateInterval: null,
  };

  render() {
    const { stats } = this;
    const used = stats?.utilization_percent ?? 0;
    const card = (label, value, ...more) =>
      h('div', { class: `card ${stats?.needs_pruning && label !== 'Messages' ? 'warning' : ''}` },
        h('div', { class: 'label' }, label), h('div', { class: 'value' }, value), more);
    put(this.body,
      h('h3', null, 'Context Manager'),
      h('div', { class: 'cards' },
        card('Messages', number(stats?.items)),
        card('Tokens', number(stats?.tokens), h('div', { class: 'label' }, `of ${number(stats?.limit)}`)),
        card('Utilization', `${used.toFixed(1)}%`,
          h('progress', { value: Math.min(used, 100), max: 100, 'aria-label': 'Utilization' }))),
      stats?.needs_pruning && [
        h('p', { class: 'banner', role: 'status' },
          `Context exceeds ${NEARLY_FULL}% capacity: pruning recommended`),
        this.mayChange && button('prune', 'Prune Context Now', () => this.prune()),
      ],
      h('p', { class: 'quiet' },
        'Older turns are summarized when they no longer fit. Each step can be undone.'));
  }

  prune() {
    propose(this, shortening(this, 'prune-session'));
  }
}
