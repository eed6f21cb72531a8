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
  '(("tiered" . "everything that fits; else the newest, and older lines the work names")
    ("query" . "everything that fits; else what fits the query best, with its neighbours")
    ("sliding" . "the first message, and the newest messages that fit")
    ("importance" . "everything that fits; else what scores highest for age, role, errors and operations"))
  "What can choose the messages that are sent, with what it prefers.
The first does so by default.")

(defconst contexture--switches
  '(:archive-pruned t :versioning t :manage nil)
  "The settings of conversations that are on or off, with their defaults.")

(defconst contexture--formats
  '((markdown . "Headings and fenced blocks, byte for byte as the protocol specifies.")
    (xml . "One `<item>` per item, with an escaped body.")
    (org . "Headings and source blocks.")
    (json . "One object with an array of items, for programs."))
  "Formats in which contexts are rendered; the first is the default.")

(defconst contexture--exports
  '(("markdown" . "Markdown, to read and to open as the same conversation.")
    ("json" . "JSON, of which `open-session` makes an equal conversation."))
  "Formats in which conversations are exported; the first is the default.")

(defconst contexture--server-tools
  '(("list_context" . "Lists the items of your context with their ids, types, sources and tokens.")
    ("read" . "Returns an item of your context in full, or a message that your window shows in part or leaves out. Of a message, it can return a range of lines.")
    ("add_file" . "Adds a file, or some of its lines, to your context.")
    ("add_text" . "Adds a text of your own to your context.")
    ("drop_context" . "Removes items from your context; the user can restore them.")
    ("search_memory" . "Finds memories of earlier work that match a text.")
    ("search_session" . "Searches this conversation for words, including messages that you do not see.")
    ("map_project" . "Returns the project's files and definitions that matter for a task, beside those in your context."))
  "Tools that the server has for models.")

(defconst contexture-provider--kinds
  '(("openai" . "https://api.openai.com/v1")
    ("responses" . "https://api.openai.com/v1")
    ("anthropic" . "https://api.anthropic.com")
    ("gemini" . "https://generativelanguage.googleapis.com")
    ("ollama" . "http://localhost:11434") ("scripted"))
  "Kinds of providers, with their usual addresses.")

(defconst contexture-provider--local
  '("ollama")
  "Kinds of providers that run here.
They want no key, and are told how large a window to load.")

(provide 'contexture-generated)
;;; contexture-generated.el ends here
