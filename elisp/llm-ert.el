;;; llm-ert.el --- Test packages that talk to models and servers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; For the test suites of packages that talk to a language model by HTTP, or
;; to a server by JSON-RPC; load it only there.  It needs nothing but Emacs.
;; A test gets a model that says what the test has it say, through the
;; interface of OpenAI, Anthropic, Gemini or Ollama:
;;
;;     (ert-deftest my-ask-inserts-the-answer ()
;;       (with-temp-buffer
;;         (let ((shown (llm-ert-with-model '(("Because " "it is so."))
;;                        (let ((my-url (llm-ert-url)))
;;                          (my-ask "Why?")
;;                          (llm-ert-wait-for
;;                           (string-search "it is so" (buffer-string)))))))
;;           (should (equal (plist-get (car shown) :prompt) "Why?")))))
;;
;; - `llm-ert-with-model' runs such a model.  It can also fail in all the
;;   ways that real ones do: see `llm-ert-faults'.
;; - `llm-ert-with-server' runs a JSON-RPC server whose calls a function of
;;   the test answers.
;; - `llm-ert-with-cassette' records a real server once, and plays it for
;;   ever, without the network.
;; - `llm-ert-wait-for' waits for events instead of time, and steps let an
;;   answer pause until the test has looked.
;; - `llm-ert-with-files' makes files in a folder that is a project.
;; - `llm-ert-leftovers' says what a mode leaves behind.
;;
;; Whatever a test leaves behind is removed, even if it fails: processes,
;; buffers, timers, hooks and folders.
;;
;; ERT in Emacs 28 and 29 binds `debug-on-error' to t while a test runs, and
;; Emacs 30 does not.  Code such as `condition-case-unless-debug' and
;; `with-demoted-errors', and the dispatchers of jsonrpc.el, then let errors
;; through that they would handle for a user.  Bind `debug-on-error' to nil
;; around what such code should handle:
;;
;;     (let ((debug-on-error nil))
;;       (should (equal (my-robust-command) "sorry")))

;;; Code:

(require 'llm-ert-cassette)
(require 'llm-ert-model)
(require 'llm-ert-server)

(provide 'llm-ert)
;;; llm-ert.el ends here
