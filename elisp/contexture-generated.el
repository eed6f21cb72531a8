;;; contexture-generated.el --- What the server and Emacs both know  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture schema --emacs' prints this file, and `make docs' writes it.
;; Change the server, not this file.

;;; Code:

(defconst contexture--changing-methods
  '(add-item add-context add-file add-tree update-items remove-items
    clear-context move-items undo redo restore refresh-items configure-manager
    open-layers save-set load-set open-session delete-session import-sessions
    add-message pin-message checkpoint rollback prune-session prune-context
    auto-manage-context summarize-session summarize-context process-turn
    report-usage remember ground-query update-memory record-push push-next
    trust-project take-notes chat approve configure-provider remove-provider
    batch backup)
  "Methods whose calls carry a request key, so that no call is applied twice.
These are the server's methods that change something, with the contract's
names for some.  `configure-session' is left out: it also reads settings,
and a repeated call of it changes nothing more.")

(defconst contexture--newest-first-methods
  '(list-items get-context get-messages session-report quality-score
    context-stats)
  "Methods whose pages go from the end of the list, the newest entries, back.")

(defconst contexture--strategies
  '("tiered" "query" "sliding" "importance")
  "What can choose the messages that are sent; the first does so by default.")

(defconst contexture--switches
  '(:archive-pruned t :versioning t :manage nil)
  "The settings of conversations that are on or off, with their defaults.")

(defconst contexture--formats
  '(markdown xml org json)
  "Formats in which contexts are rendered; the first is the default.")

(defconst contexture--exports
  '("markdown" "json")
  "Formats in which conversations are exported; the first is the default.")

(defconst contexture-provider--kinds
  '(("openai" . "https://api.openai.com/v1")
    ("responses" . "https://api.openai.com/v1")
    ("anthropic" . "https://api.anthropic.com")
    ("gemini" . "https://generativelanguage.googleapis.com")
    ("ollama" . "http://localhost:11434") ("scripted"))
  "Kinds of providers, with their usual addresses.")

(provide 'contexture-generated)
;;; contexture-generated.el ends here
