;;; screens.el --- The Emacs in the screens of the documentation  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What scripts/screens loads: Emacs as a user has it after reading the
;; README, with what would differ from one run to the next turned off.

;;; Code:

;; A new home has no compiled code; compiling it would take the time of the session.
(setq native-comp-deferred-compilation nil
      native-comp-jit-compilation nil)

(require 'contexture)

(defvar contexture-doctor-timeout)
(defvar contexture-limit)
(defvar trusted-content)
(defvar vc-display-status)

(defun screens-set-up ()
  "Set up the package as the README says, and open the first file."
  (setq inhibit-startup-screen t
        auto-save-default nil
        make-backup-files nil
        create-lockfiles nil
        ring-bell-function #'ignore
        vc-display-status nil
        contexture-limit 8000
        contexture-doctor-timeout 60    ; the machine may be busy
        contexture-server-args '("--fixed-time" "1893456000"))
  (setq-default trusted-content '("~/src/contexture/")) ; for Flymake
  (menu-bar-mode -1)
  (load-theme 'modus-vivendi t)
  (global-set-key (kbd "C-c x") 'contexture-command-map)
  (contexture-global-mode)
  (contexture-global-mention-mode)
  (find-file "elisp/contexture-log.el"))

(provide 'screens)
;;; screens.el ends here
