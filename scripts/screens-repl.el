;;; screens-repl.el --- The Emacs in the screen of a conversation  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What scripts/screens-repl loads: Emacs with the package, a real server,
;; and the model of the test suite, which says what is written here.

;;; Code:

(require 'seq)
(require 'contexture)
(require 'contexture-repl-test-helper)

(defvar vc-display-status)

(defconst screens-repl-answer
  '((:kind :status :text "summarized 12 turns")
    "Let me look.\n\n" "## What is wrong\n\n" "- An **empty list** has no mean: "
    "`calc-mean` then divides " "by zero.\n"
    "- With whole numbers `/` cuts the result off.\n\n"
    "```elisp\n" "(defun calc-mean (numbers)\n"
    "  \"Return the mean of NUMBERS, or nil if there are none.\"\n"
    "  (when numbers\n" "    (/ (apply #'+ 0.0 numbers) (length numbers))))\n" "```\n"
    "1. Tests belong to it.\n" "2. See [the manual](https://www.gnu.org/software/emacs).\n")
  "What the model says.")

(defun screens-repl-set-up ()
  "Set up the package, and open a file."
  (setq inhibit-startup-screen t
        auto-save-default nil
        make-backup-files nil
        create-lockfiles nil
        ring-bell-function #'ignore
        vc-display-status nil
        contexture-repl-test-answers
        (list (append (seq-take screens-repl-answer 5) '("by ze" hang))
              screens-repl-answer)
        contexture-repl-test--command
        (list (getenv "CONTEXTURE_BIN") "--ephemeral" "--fixed-time" "1893456000"
              "serve" "--stdio"))
  (menu-bar-mode -1)
  (load-theme 'modus-vivendi t)
  (global-set-key (kbd "C-c x") 'contexture-command-map)
  (let ((socket (expand-file-name "socket" "~")))
    (contexture-repl-test-serve socket)
    (require 'contexture-call)
    (setq contexture--connection (contexture--new-connection (list :unix socket))))
  (find-file "calc.el")
  (search-forward "apply"))

;;; screens-repl.el ends here
