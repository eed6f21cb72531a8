;;; screens-repl.el --- The Emacs in the screen of a conversation  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What scripts/screens-repl loads: Emacs as a user has it after reading
;; the README, with a server whose model plays a script.

;;; Code:

;; A new home has no compiled code; compiling it would take the time of the session.
(setq native-comp-deferred-compilation nil
      native-comp-jit-compilation nil)

(require 'contexture)

(defvar vc-display-status)
(defvar contexture-conversation-history-file)

(defun screens-repl-set-up ()
  "Set up the package as the README says, and open a file."
  (setq inhibit-startup-screen t
        auto-save-default nil
        make-backup-files nil
        create-lockfiles nil
        ring-bell-function #'ignore
        vc-display-status nil
        contexture-conversation-history-file "~/history"
        contexture-server-command (getenv "CONTEXTURE_BIN")
        contexture-server-args '("--ephemeral" "--fixed-time" "1893456000"))
  (menu-bar-mode -1)
  (load-theme 'modus-vivendi t)
  (global-set-key (kbd "C-c x") 'contexture-command-map)
  (find-file "calc.el")
  (search-forward "apply"))

;;; screens-repl.el ends here
