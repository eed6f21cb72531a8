// Names the elements, and joins those of the dashboard's own page.

for (const [name, element] of Object.entries({
  'contexture-status': Status,
  'context-manager-widget': ContextManagerWidget,
  'contexture-sessions': Sessions,
  'contexture-window': ContextWindow,
  'contexture-session': Session,
})) {
  if (!customElements.get(name)) customElements.define(name, element);
}

const own = document.querySelector('main.split');
if (own) {
  // The one-time token of the address is used up; it need not stay in the history.
  history.replaceState(null, '', `/${location.hash}`);
  const [sessions, session] = own.children;
  const choose = (id) => {
    for (const element of [sessions, session]) if (id && element.session !== id) element.setAttribute('session', id);
  };
  sessions.addEventListener('contexture-listed', ({ detail }) => {
    session.known = detail;
    const row = detail.find((it) => it.id === session.session);
    document.title = row ? `${shown(row.session)} – Contexture` : 'Contexture';
    if (!session.session) choose(detail[0]?.id);
    else session.showHead();
  });
  own.addEventListener('contexture-open', ({ detail }) => {
    history.pushState(null, '', `/#${detail}`);
    choose(detail);
    session.focus();
  });
  addEventListener('popstate', () => choose(location.hash.slice(1)));
  if (/^#ses-\d+$/.test(location.hash)) choose(location.hash.slice(1));
  addEventListener('contexture-link', ({ detail: { state, text } }) => {
    const link = document.querySelector('#link');
    if (text) put(link, h('span', { class: `dot ${state}`, 'aria-hidden': 'true' }), text);
  });
}
