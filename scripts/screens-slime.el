;;; screens-slime.el --- The Emacs in the screens of SLIME  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What scripts/screens-slime and scripts/screens-tools load: Emacs with
;; SLIME as its manual sets it up, and the package.

;;; Code:

;; A new home has no compiled code; compiling it would take the time of the session.
(setq native-comp-deferred-compilation nil
      native-comp-jit-compilation nil)

(require 'slime-autoloads)
(require 'contexture)

(defvar contexture-server-command)
(defvar contexture-server-args)
(defvar inferior-lisp-program)
(defvar slime-header-line-p)
(defvar slime-words-of-encouragement)
(defvar vc-display-status)

(defun screens-slime-set-up ()
  "Set up both packages."
  (setq inhibit-startup-screen t
        auto-save-default nil
        make-backup-files nil
        create-lockfiles nil
        ring-bell-function #'ignore
        vc-display-status nil
        frame-background-mode 'dark
        slime-header-line-p nil         ; it has numbers that change
        slime-words-of-encouragement '("Let the hacking commence!")
        inferior-lisp-program "sbcl --no-userinit --no-sysinit"
        contexture-server-command (getenv "CONTEXTURE_BIN")
        contexture-server-args '("--ephemeral" "--fixed-time" "1893456000"))
  (menu-bar-mode -1)
  (load-theme 'modus-vivendi t)
  (global-set-key (kbd "C-c x") 'contexture-command-map)
  (contexture-slime-mode))

;;; screens-slime.el ends here
