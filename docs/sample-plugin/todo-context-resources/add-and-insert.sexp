; Two lines are added, and inserted as Markdown.
> (:id 1 :method "add-item" :params (:manager "todos" :type :code :content "(two) ; TODO: rename" :metadata (:filename "/contexture-ert/src/a.el" :buffer "a.el" :start-line 2 :end-line 2 :origin :note)))
< (:id 1 :result (:id "ctx-1" :type :code :content "(two) ; TODO: rename" :metadata (:filename "/contexture-ert/src/a.el" :buffer "a.el" :start-line 2 :end-line 2 :origin :note) :timestamp 1700000000 :tokens 5 :token-counter :estimate :bytes 20 :pinned nil :live nil :state :fresh :manager "todos" :count 1 :total-tokens 5 :version 3))
> (:id 2 :method "add-item" :params (:manager "todos" :type :code :content ";; FIXME three" :metadata (:filename "/contexture-ert/src/a.el" :buffer "a.el" :start-line 3 :end-line 3 :origin :note)))
< (:id 2 :result (:id "ctx-2" :type :code :content ";; FIXME three" :metadata (:filename "/contexture-ert/src/a.el" :buffer "a.el" :start-line 3 :end-line 3 :origin :note) :timestamp 1700000000 :tokens 4 :token-counter :estimate :bytes 14 :pinned nil :live nil :state :fresh :manager "todos" :count 2 :total-tokens 9 :version 5))
> (:id 3 :method "context-to-string" :params (:manager "todos"))
< (:id 3 :result "## Context\n\n### Code (from /contexture-ert/src/a.el:2-2)\n```elisp\n(two) ; TODO: rename\n```\n\n### Code (from /contexture-ert/src/a.el:3-3)\n```elisp\n;; FIXME three\n```\n\n")
